package isolate

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stintgo/stint/queue"
)

// The worker and the process of a [Handler] exchange frames: the length of a JSON object
// in four bytes, big-endian, and the object. The worker writes orders to the standard
// input of the process; the process writes answers to its descriptor 3. Both run the same
// program, so the frames need no version.

// order is a frame of the worker: the first one names the task, a later one stops it, or
// answers a Sync.
type order struct {
	Kind   string      `json:"kind,omitempty"`
	Task   *queue.Task `json:"task,omitempty"`
	Memory int64       `json:"memory,omitempty"` // of [Config]
	Stop   cause       `json:"stop,omitempty"`
	Stored int         `json:"stored,omitempty"` // the store has this many checkpoints of the handler
	Lost   cause       `json:"lost,omitempty"`   // why the store takes no more of them
}

// answer is a frame of the handler's process: what the handler reports, and in the last
// frame what it returned.
type answer struct {
	Progress   queue.Progress  `json:"progress,omitzero"`
	Checkpoint []byte          `json:"checkpoint,omitempty"`
	Saved      bool            `json:"saved,omitempty"` // Checkpoint is set, maybe to no bytes
	Sync       int             `json:"sync,omitempty"`  // the handler waits until the store has this many checkpoints
	Result     json.RawMessage `json:"result,omitempty"`
	Done       *returned       `json:"done,omitempty"`
}

// returned is the wire form of the error that a handler returned.
type returned struct {
	Failed    bool           `json:"failed,omitempty"`
	Error     string         `json:"error,omitempty"`
	Permanent bool           `json:"permanent,omitempty"`
	Shortage  bool           `json:"shortage,omitempty"`
	After     *time.Duration `json:"after_ns,omitempty"`
	Snooze    *time.Duration `json:"snooze_ns,omitempty"`
}

// frameMax is the largest frame, in bytes. It is above the largest payload, in JSON, that
// a store accepts by default.
const frameMax = 64 << 20

// errFrame is the error of bytes that are not a valid frame.
var errFrame = errors.New("invalid frame")

// writeFrame writes value as a frame. It returns [queue.ErrTooLarge] for a value of more
// than frameMax bytes.
func writeFrame(w io.Writer, value any) error {
	frame, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(frame) > frameMax {
		return fmt.Errorf("%w: a frame of %d bytes; the limit is %d", queue.ErrTooLarge, len(frame), frameMax)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}

// readFrame reads a value that writeFrame wrote. It returns io.EOF at the end, errors of
// r, and errFrame for bytes that are not a valid frame.
func readFrame(r io.Reader, value any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > frameMax {
		return fmt.Errorf("%w: it begins with the length %d", errFrame, n)
	}
	// ReadAll allocates as bytes arrive, so that a false length costs no memory.
	frame, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return err
	}
	if len(frame) < int(n) {
		return io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(frame, value); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	return nil
}
