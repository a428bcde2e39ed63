//go:build unix

package isolate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/internal/watcher"
	"github.com/stintgo/stint/queue"
)

// talk is what a worker and the process of a handler say to each other.
type talk struct {
	orders  *os.File // to the process
	stdin   *os.File // its end of that
	answers *os.File // from the process
	fd3     *os.File // its end of that

	stop   chan cause // holds one
	spoken chan struct{}

	heard chan struct{} // listening is over
	done  *returned
	err   error
}

func newTalk() (*talk, error) {
	t := &talk{stop: make(chan cause, 1), spoken: make(chan struct{}), heard: make(chan struct{})}
	var err error
	if t.stdin, t.orders, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("isolate: %w", err)
	}
	if t.answers, t.fd3, err = os.Pipe(); err != nil {
		_ = t.stdin.Close()
		_ = t.orders.Close()
		return nil, fmt.Errorf("isolate: %w", err)
	}
	return t, nil
}

// runHandler has a handler do a task in a new process. take is called with what
// it reports, from one goroutine at a time.
func (c *Config) runHandler(
	ctx context.Context, name string, a *queue.Attempt, take func(*answer) error,
) (*returned, error) {
	var first bytes.Buffer
	if err := writeFrame(&first, order{Handler: name, Task: &a.Task, Memory: c.Memory}); err != nil {
		return nil, err
	}
	self, err := ownFile()
	if err != nil {
		return nil, err
	}
	talk, err := newTalk()
	if err != nil {
		return nil, attribute(err)
	}
	go talk.speak(first.Bytes())
	go talk.listen(take)
	_, err = c.run(ctx, a, &program{
		path: self, args: []string{os.Args[0], argHandler}, env: taskEnv(&a.Task), stdin: talk.stdin,
		extra: []*os.File{talk.fd3},
		stop:  func(_ *proc.Process, why error) { talk.stop <- newCause(why) },
	})
	talk.close()
	return talk.verdict(err)
}

// ownFile is the file of this program.
func ownFile() (string, error) {
	if watcher.Program != "" {
		return watcher.Program, nil
	}
	return os.Executable()
}

// speak tells the process what to do, and then, if need be, to stop.
func (t *talk) speak(first []byte) {
	defer close(t.spoken)
	if _, err := t.orders.Write(first); err != nil {
		return // it ends without having read; that is told otherwise
	}
	if why, ok := <-t.stop; ok {
		_ = writeFrame(t.orders, order{Stop: why}) // one that does not listen is killed later
	}
}

// listen takes what the process says.
func (t *talk) listen(take func(*answer) error) {
	defer close(t.heard)
	t.done, t.err = listen(t.answers, take)
	if t.err != nil && !errors.Is(t.err, io.EOF) {
		_, _ = io.Copy(io.Discard, t.answers) // so that it never waits for us
	}
}

// close is called when the process has ended.
func (t *talk) close() {
	close(t.stop)
	_ = t.stdin.Close()
	_ = t.fd3.Close()
	// One who has left the group may have the other ends.
	_ = t.orders.SetWriteDeadline(now())
	_ = t.answers.SetReadDeadline(now().Add(time.Second))
	<-t.spoken
	<-t.heard
	_ = t.orders.Close()
	_ = t.answers.Close()
}

// verdict is what became of the task. failed is how the process ended.
func (t *talk) verdict(failed error) (*returned, error) {
	switch {
	case t.done != nil:
		return t.done, nil // the process may do as it likes afterwards
	case failed != nil:
		return nil, failed
	case errors.Is(t.err, errFrame):
		return nil, fmt.Errorf("isolate: the handler's process has written to its descriptor 3: %w", t.err)
	default:
		return nil, fmt.Errorf("isolate: the handler's process has ended without a word, as by os.Exit(0): %w", t.err)
	}
}
