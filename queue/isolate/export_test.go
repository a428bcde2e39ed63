package isolate

import (
	"io"

	"github.com/stintgo/stint/queue"
)

// Listen reads what a handler's process says, and returns what is left of the
// handler's error.
func Listen(r io.Reader) (reports int, returned, err error) {
	done, err := listen(r, func(*answer) error { reports++; return nil })
	if err != nil {
		return reports, nil, err
	}
	return reports, done.err(), nil
}

// Tell writes what a handler's process says: a report and what it returned.
func Tell(w io.Writer, r queue.Reported, returned error) error {
	a, _ := news(&queue.Reported{}, r)
	if err := writeFrame(w, a); err != nil {
		return err
	}
	return writeFrame(w, answer{Done: newReturned(returned)})
}
