package transfer

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"

	"github.com/stintgo/stint/queue"
)

// partOf is the metadata key of a partial upload. Its value is "<group> <offset> <total>":
// a name that the parts of one file share, where the part begins in the file, and the size of
// the file, both in bytes. A server that knows the key can write all parts of a group into
// one file, so that concatenation copies nothing; others ignore it.
const partOf = "part-of"

// plan is how a file is being uploaded: what the next attempt must know. Once it is
// in use, only fields that are safe for concurrent use change. An upload that starts over gets a new
// plan.
type plan struct {
	layout layout
	file   fingerprint
	group  string // for partOf: 128 bits in hexadecimal digits
	sha256 string // of the file, if it is to be verified
	chunks *chunkTable
	lanes  []*lane
}

// newPlan returns a plan for a file of which the server has nothing.
func newPlan(l layout, file fingerprint, sha256 string) *plan {
	p := &plan{layout: l, file: file, group: newGroup(), sha256: sha256, chunks: newChunkTable(l.chunks())}
	p.addLanes()
	return p
}

// newGroup returns a group that no other plan has.
func newGroup() string {
	var group [16]byte
	rand.Read(group[:])
	return hex.EncodeToString(group[:])
}

// of returns the same plan with another fingerprint of the file. The two share the states of the
// chunks and the lanes.
func (p *plan) of(file fingerprint) *plan {
	other := *p
	other.file = file
	return &other
}

func (p *plan) addLanes() {
	for i := range p.layout.lanes {
		l := &lane{}
		l.first, l.last = p.layout.lane(i)
		l.start, l.end = p.layout.offset(l.first), p.layout.offset(l.last)
		l.offset.Store(l.start)
		p.lanes = append(p.lanes, l)
	}
}

// urls returns the URLs of the uploads of the lanes, "" for those that are not created.
func (p *plan) urls() []string {
	all := make([]string, len(p.lanes))
	for i, l := range p.lanes {
		if at := l.url.Load(); at != nil {
			all[i] = at.String()
		}
	}
	return all
}

// locations returns the URLs of the uploads of the lanes, nil for those that are not created.
func (p *plan) locations() []*url.URL {
	all := make([]*url.URL, len(p.lanes))
	for i, l := range p.lanes {
		all[i] = l.url.Load()
	}
	return all
}

// share gives lanes without a URL that of another lane: the process ended before all were saved.
func (p *plan) share() {
	all := p.locations()
	first := slices.IndexFunc(all, func(at *url.URL) bool { return at != nil })
	for i, at := range all {
		if at == nil && first >= 0 {
			p.lanes[i].url.Store(all[first])
		}
	}
}

// done returns how many bytes of the file the server has or is being sent.
func (p *plan) done() (bytes int64) {
	for _, l := range p.lanes {
		bytes += l.offset.Load() - l.start
		if b := l.sending.Load(); b != nil {
			bytes += b.sent.Load()
		}
	}
	if p.layout.size == 0 { // of the standard input, whose size is not known
		return bytes
	}
	return min(bytes, p.layout.size)
}

// acknowledged returns the number of bytes of the chunks that are done.
func (p *plan) acknowledged() (bytes int64) {
	states, _ := p.chunks.copied()
	for i, s := range states {
		if s == ChunkDone {
			bytes += p.layout.offset(i+1) - p.layout.offset(i)
		}
	}
	return bytes
}

// checkpoint is a plan in JSON, in the checkpoint of the task. Readers refuse another
// version.
type checkpoint struct {
	Version   int         `json:"version"`
	File      fingerprint `json:"file"`
	ChunkSize int64       `json:"chunk_size"`
	Group     string      `json:"group,omitempty"`
	SHA256    string      `json:"sha256,omitempty"`
	URLs      []string    `json:"urls"`   // of each lane
	Chunks    string      `json:"chunks"` // the first letter of each chunk's state
	CRC32C    []byte      `json:"crc32c"` // of each chunk, 4 bytes in big-endian order; 0 if it is not known
}

const checkpointVersion = 1

// encode returns the plan as a checkpoint, in about 7 bytes for each chunk.
func (p *plan) encode() []byte {
	states, crcs := p.chunks.copied()
	c := checkpoint{
		Version: checkpointVersion, File: p.file, ChunkSize: p.layout.chunk, Group: p.group, SHA256: p.sha256,
		URLs: p.urls(), CRC32C: make([]byte, 0, len(crcs)*sumSize),
	}
	letters := make([]byte, len(states))
	for i, s := range states {
		letters[i] = s.String()[0]
		c.CRC32C = binary.BigEndian.AppendUint32(c.CRC32C, crcs[i])
	}
	c.Chunks = string(letters)
	encoded, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("transfer: encode a checkpoint: %v", err)) // it has strings and numbers only
	}
	return encoded
}

// sumSize is the size of a CRC32C in bytes.
const sumSize = 4

// decodePlan returns the plan of a checkpoint.
func decodePlan(encoded []byte) (*plan, error) {
	var c checkpoint
	if err := json.Unmarshal(encoded, &c); err != nil {
		return nil, fmt.Errorf("%w: checkpoint of an upload: %w", queue.ErrInvalid, err)
	}
	l := layout{size: c.File.Size, chunk: c.ChunkSize, lanes: len(c.URLs)}
	if c.Version != checkpointVersion || l.size < 0 || l.chunk <= 0 || l.size/l.chunk >= MaxChunks+1 ||
		l.lanes < 1 || l.lanes > max(1, l.chunks()) ||
		len(c.Chunks) != l.chunks() || len(c.CRC32C) != l.chunks()*sumSize {
		return nil, fmt.Errorf("%w: checkpoint of an upload, version %d: %s, %d states", queue.ErrInvalid, c.Version, l,
			len(c.Chunks))
	}
	p := &plan{layout: l, file: c.File, group: c.Group, sha256: c.SHA256, chunks: newChunkTable(l.chunks())}
	for i := range p.chunks.states {
		state := slices.IndexFunc(chunkStateNames[:], func(name string) bool { return name[0] == c.Chunks[i] })
		if state < 0 {
			return nil, fmt.Errorf("%w: checkpoint of an upload: state %q of a chunk", queue.ErrInvalid, c.Chunks[i])
		}
		p.chunks.states[i] = ChunkState(state)
		p.chunks.sums[i] = binary.BigEndian.Uint32(c.CRC32C[i*sumSize:])
	}
	p.addLanes()
	for i, text := range c.URLs {
		if text == "" {
			continue
		}
		at, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%w: checkpoint of an upload: %w", queue.ErrInvalid, err)
		}
		p.lanes[i].url.Store(at)
	}
	return p, nil
}
