package transfer

import (
	"fmt"
	"hash/crc32"
	"slices"
	"sync"
)

// ChunkState is the state of a chunk of a file. Each chunk is in exactly one state, and
// changes it only by a [ChunkTransition] of [ChunkTransitions].
type ChunkState uint8

// The states of a chunk.
const (
	// ChunkPending chunks have not been sent.
	ChunkPending ChunkState = iota
	// ChunkUploading chunks are being sent.
	ChunkUploading
	// ChunkDone chunks are at the server.
	ChunkDone
	// ChunkError chunks were sent, and the request failed.
	ChunkError
)

// ChunkStates returns all states of a chunk.
func ChunkStates() []ChunkState {
	return []ChunkState{ChunkPending, ChunkUploading, ChunkDone, ChunkError}
}

var chunkStateNames = [...]string{
	ChunkPending: "pending", ChunkUploading: "uploading", ChunkDone: "done", ChunkError: "error",
}

// String returns the name of the state.
func (s ChunkState) String() string {
	if int(s) < len(chunkStateNames) {
		return chunkStateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// MarshalText returns the name of the state.
func (s ChunkState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText parses the name of a state.
func (s *ChunkState) UnmarshalText(text []byte) error {
	i := slices.Index(chunkStateNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown state of a chunk %q; the states are %v", text, chunkStateNames)
	}
	*s = ChunkState(i)
	return nil
}

// ChunkTrigger is the cause of a change of a chunk's state.
type ChunkTrigger uint8

// The triggers.
const (
	OnSend ChunkTrigger = iota // a request with the chunk begins
	OnAck                      // the server has the whole chunk, as an answer or a HEAD says
	OnFail                     // the request failed; the chunk is sent again after a delay
	OnStop                     // the attempt was paused, cancelled or stopped, or its process died
	OnLost                     // the server does not have the chunk any more, or the file has changed
)

var chunkTriggerNames = [...]string{
	OnSend: "send", OnAck: "acknowledge", OnFail: "fail", OnStop: "stop", OnLost: "lose",
}

// String returns the name of the trigger.
func (t ChunkTrigger) String() string {
	if int(t) < len(chunkTriggerNames) {
		return chunkTriggerNames[t]
	}
	return fmt.Sprintf("trigger(%d)", uint8(t))
}

// ChunkTransition is one line of the table of all changes of a chunk's state.
type ChunkTransition struct {
	From ChunkState
	On   ChunkTrigger
	To   ChunkState
}

// ChunkTransitions returns the table of all changes of a chunk's state. The drawing in
// docs/upload.md is made from it.
func ChunkTransitions() []ChunkTransition { return slices.Clone(chunkTransitionTable) }

var chunkTransitionTable = []ChunkTransition{
	{ChunkPending, OnSend, ChunkUploading},
	{ChunkPending, OnAck, ChunkDone}, // sent by an attempt whose process died before it saved that
	{ChunkUploading, OnAck, ChunkDone},
	{ChunkUploading, OnFail, ChunkError},
	{ChunkUploading, OnStop, ChunkPending},
	{ChunkError, OnSend, ChunkUploading},
	{ChunkError, OnAck, ChunkDone}, // the answer was lost, not the chunk
	{ChunkError, OnLost, ChunkPending},
	{ChunkDone, OnLost, ChunkPending},
}

// chunkTable has the state and the checksum of each chunk of a file. It is safe for
// concurrent use.
type chunkTable struct {
	mu     sync.Mutex
	states []ChunkState
	sums   []uint32 // CRC32C of chunks that are done, and of others if it was known before they were sent; else 0
}

// castagnoli is the polynomial of CRC32C (RFC 3720, section 12.1).
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

func newChunkTable(chunks int) *chunkTable {
	return &chunkTable{states: make([]ChunkState, chunks), sums: make([]uint32, chunks)}
}

// fail records that a request with a chunk failed.
func (c *chunkTable) fail(chunk int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onLocked(chunk, OnFail)
}

// onLocked changes the state of a chunk. It panics if the table of transitions does not have
// the change. The caller holds mu.
func (c *chunkTable) onLocked(chunk int, trigger ChunkTrigger) {
	for _, line := range chunkTransitionTable {
		if line.From == c.states[chunk] && line.On == trigger {
			c.states[chunk] = line.To
			return
		}
	}
	panic(fmt.Sprintf("transfer: chunk %d is %s and cannot %s", chunk, c.states[chunk], trigger))
}

// sending records that a request with a chunk begins, and its checksum; 0 if that is not known.
func (c *chunkTable) sending(chunk int, sum uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onLocked(chunk, OnSend)
	c.sums[chunk] = sum
}

// done records that the server has a chunk with a checksum.
func (c *chunkTable) done(chunk int, sum uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onLocked(chunk, OnAck)
	c.sums[chunk] = sum
}

// lose makes the chunks from first to last, without last, pending.
func (c *chunkTable) lose(first, last int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := first; i < last; i++ {
		if s := c.states[i]; s == ChunkDone || s == ChunkError {
			c.onLocked(i, OnLost)
		}
		c.sums[i] = 0
	}
}

// stop makes the chunks that are being sent pending.
func (c *chunkTable) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, s := range c.states {
		if s == ChunkUploading {
			c.onLocked(i, OnStop)
		}
	}
}

// state returns the state and the checksum of a chunk.
func (c *chunkTable) state(chunk int) (ChunkState, uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.states[chunk], c.sums[chunk]
}

// copied returns copies of the states and the checksums.
func (c *chunkTable) copied() ([]ChunkState, []uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.states), slices.Clone(c.sums)
}
