package isolate

import (
	"io"

	"github.com/stintgo/stint/queue"
)

// Receive reads the answers of a handler's process. It returns how many it read, and the
// handler's error as it arrives in the worker.
func Receive(r io.Reader) (reports int, returned, err error) {
	done, err := receive(r, func(*answer) error { reports++; return nil })
	if err != nil {
		return reports, nil, err
	}
	return reports, done.err(), nil
}

// Send writes the answers of a handler's process: a report, and what the handler
// returned.
func Send(w io.Writer, r queue.Reported, returned error) error {
	a, _ := changes(&queue.Reported{}, r)
	if err := writeFrame(w, a); err != nil {
		return err
	}
	return writeFrame(w, answer{Done: newReturned(returned)})
}
