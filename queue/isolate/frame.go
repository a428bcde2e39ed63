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

// The two processes of a [Handler] talk in frames: the length of what follows in
// four bytes, the highest first, and a JSON object. The worker writes orders to
// the standard input of the other, which writes answers to its descriptor 3.
// Both are the same program, so the frames need no version.

// order is what the worker says: first which task to do, later to stop.
type order struct {
	Handler string      `json:"handler,omitempty"`
	Task    *queue.Task `json:"task,omitempty"`
	Memory  int64       `json:"memory,omitempty"` // of [Config]
	Stop    cause       `json:"stop,omitempty"`
}

// answer is what the other process says: what the handler reports, and at last
// what it returned.
type answer struct {
	Progress   queue.Progress  `json:"progress,omitzero"`
	Checkpoint []byte          `json:"checkpoint,omitempty"`
	Saved      bool            `json:"saved,omitempty"` // there is a checkpoint, maybe of no bytes
	Result     json.RawMessage `json:"result,omitempty"`
	Done       *returned       `json:"done,omitempty"`
}

// returned is an error on its way to another process.
type returned struct {
	Failed    bool           `json:"failed,omitempty"`
	Error     string         `json:"error,omitempty"`
	Permanent bool           `json:"permanent,omitempty"`
	After     *time.Duration `json:"after_ns,omitempty"`
	Snooze    *time.Duration `json:"snooze_ns,omitempty"`
}

// frameMax bounds what is read into memory: above the largest payload, in JSON,
// that a store takes if nobody has told it otherwise.
const frameMax = 64 << 20

// errFrame is what a process says that is no frame.
var errFrame = errors.New("no frame")

// writeFrame writes a value.
func writeFrame(w io.Writer, value any) error {
	frame, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if len(frame) > frameMax {
		return fmt.Errorf("%w: of %d bytes, and at most %d are taken", queue.ErrTooLarge, len(frame), frameMax)
	}
	_, err = w.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...))
	return err
}

// readFrame reads a value that was written with writeFrame. It answers io.EOF at
// the end, errors of r, and errFrame for what is none.
func readFrame(r io.Reader, value any) error {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > frameMax {
		return fmt.Errorf("%w: it begins with the length %d", errFrame, n)
	}
	// It is read as it comes: one who only says that there is much costs no memory.
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
