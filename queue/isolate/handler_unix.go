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

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/internal/watcher"
	"github.com/stintgo/stint/queue"
)

// conn is the connection between the worker and the process of a handler: two pipes.
type conn struct {
	orders  *os.File // the worker's end of the pipe to the process
	stdin   *os.File // the process's end of that pipe
	answers *os.File // the worker's end of the pipe from the process
	fd3     *os.File // the process's end of that pipe

	stop   chan cause    // holds one; closed when the process has ended
	stored chan order    // answers to Sync
	sent   chan struct{} // closed when sendOrders has returned

	syncs  chan int      // how many checkpoints a Sync waits for; holds the last number
	synced chan struct{} // closed when sync has returned

	received chan struct{} // closed when receive has returned
	done     *returned     // written by receive
	err      error         // written by receive
}

func newConn() (*conn, error) {
	c := &conn{
		stop: make(chan cause, 1), stored: make(chan order), sent: make(chan struct{}),
		syncs: make(chan int, 1), synced: make(chan struct{}), received: make(chan struct{}),
	}
	var err error
	if c.stdin, c.orders, err = os.Pipe(); err != nil {
		return nil, fmt.Errorf("isolate: %w", err)
	}
	if c.answers, c.fd3, err = os.Pipe(); err != nil {
		_ = c.stdin.Close()
		_ = c.orders.Close()
		return nil, fmt.Errorf("isolate: %w", err)
	}
	return c, nil
}

// runHandler runs the task of a in a new process, by the handler called name. It calls
// apply with each answer, from one goroutine at a time.
func (c *Config) runHandler(
	ctx context.Context, name string, a *queue.Attempt, apply func(*answer) error,
) (*returned, error) {
	var first bytes.Buffer
	if err := writeFrame(&first, order{Kind: name, Task: &a.Task, Memory: c.Memory}); err != nil {
		return nil, err
	}
	self, err := ownFile()
	if err != nil {
		return nil, err
	}
	conn, err := newConn()
	if err != nil {
		return nil, attribute(err)
	}
	go conn.sendOrders(first.Bytes())
	go conn.receive(apply)
	syncing, ended := context.WithCancel(context.WithoutCancel(ctx)) // Sync also works after an order to end
	go conn.sync(syncing, a)
	_, err = c.run(ctx, a, &program{
		path: self, args: []string{os.Args[0], argHandler}, env: taskEnv(&a.Task), stdin: conn.stdin,
		extra: []*os.File{conn.fd3},
		stop:  func(_ *proc.Process, why error) { conn.stop <- newCause(why) },
	})
	ended()
	conn.close()
	return conn.outcome(err)
}

// ownFile returns the path of this program's file.
func ownFile() (string, error) {
	if watcher.Program != "" {
		return watcher.Program, nil
	}
	return os.Executable()
}

// sendOrders writes the first order, and later the answers to Sync and the order to stop.
func (c *conn) sendOrders(first []byte) {
	defer close(c.sent)
	if _, err := c.orders.Write(first); err != nil {
		return // the process ended before it read the order; its exit says why
	}
	for {
		var next order
		select {
		case why, running := <-c.stop:
			if !running {
				return
			}
			next.Stop = why
		case next = <-c.stored:
		}
		_ = writeFrame(c.orders, next) // a process that does not read it is killed after the grace
	}
}

// sync waits for the checkpoints that the handler waits for, and answers it, until ctx ends.
func (c *conn) sync(ctx context.Context, a *queue.Attempt) {
	defer close(c.synced)
	for {
		var reply order
		select {
		case reply.Stored = <-c.syncs:
		case <-ctx.Done():
			return
		}
		if err := a.Sync(ctx); err != nil {
			reply = order{Lost: newCause(err)}
		}
		select {
		case c.stored <- reply:
		case <-ctx.Done():
			return
		}
	}
}

// requestSync makes sync wait for n checkpoints, instead of an earlier number.
func (c *conn) requestSync(n int) {
	select {
	case <-c.syncs:
	default:
	}
	c.syncs <- n
}

// receive reads the answers of the process and applies them.
func (c *conn) receive(apply func(*answer) error) {
	defer close(c.received)
	c.done, c.err = receive(c.answers, func(said *answer) error {
		err := apply(said)
		if err == nil && said.Sync > 0 {
			c.requestSync(said.Sync)
		}
		return err
	})
	if c.err != nil && !errors.Is(c.err, io.EOF) {
		_, _ = io.Copy(io.Discard, c.answers) // so that the process never blocks on a full pipe
	}
}

// close ends the goroutines and closes the pipes. It is called after the process has
// ended.
func (c *conn) close() {
	close(c.stop)
	_ = c.stdin.Close()
	_ = c.fd3.Close()
	// A process that left the group may hold the other ends.
	_ = c.orders.SetWriteDeadline(clock.Now())
	_ = c.answers.SetReadDeadline(clock.Now().Add(time.Second))
	<-c.sent
	<-c.synced
	<-c.received
	_ = c.orders.Close()
	_ = c.answers.Close()
}

// outcome returns what the handler returned, or the error of an attempt whose handler did
// not return. failed is the error of the process.
func (c *conn) outcome(failed error) (*returned, error) {
	switch {
	case c.done != nil:
		return c.done, nil // how the process ends after that does not matter
	case failed != nil:
		return nil, failed
	case errors.Is(c.err, errFrame):
		return nil, fmt.Errorf("isolate: the handler's process has written to its descriptor 3: %w", c.err)
	default:
		return nil, fmt.Errorf("isolate: the handler's process exited before the handler returned, as by os.Exit(0): %w",
			c.err)
	}
}
