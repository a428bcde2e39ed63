//go:build unix

package isolate

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

const (
	// pipeFor is how long the end of the output is waited for when the group has
	// ended: one who has left the group may have the pipe still.
	pipeFor = time.Second
	// logFor is how long the log is then waited for.
	logFor = 5 * time.Second
	// logAhead is how many reads of up to 32 KiB a log may be behind before the
	// processes wait for it.
	logAhead = 16
)

// output takes what processes write, all of it, and keeps as much as it may.
type output struct {
	pipe *os.File       // the end that is read
	log  io.WriteCloser // or nil; owned by write, which is a goroutine of its own
	left int64          // bytes that may still be kept; owned by copy
	done chan struct{}  // copy is over

	chunks  chan []byte   // for the log; closed when there are no more
	written chan struct{} // the log has taken all of them, and is closed
	late    chan struct{} // closed when nobody waits for the log any more

	mu    sync.Mutex
	total int64  // guarded by mu
	lost  string // why the log has not all; guarded by mu
	tail  tail   // guarded by mu; read by others when copy is over
}

// newOutput makes the pipe, whose other end is for the processes. It has the log
// closed, also if it fails.
func newOutput(log io.WriteCloser, most int64) (o *output, end *os.File, err error) {
	o = &output{
		log: log, left: most, done: make(chan struct{}),
		chunks: make(chan []byte, logAhead), written: make(chan struct{}), late: make(chan struct{}),
	}
	if o.pipe, end, err = os.Pipe(); err != nil {
		o.abandon()
		return nil, nil, fmt.Errorf("isolate: %w", err)
	}
	return o, end, nil
}

// begin is called when the processes have been started, abandon when they cannot
// be.
func (o *output) begin() {
	go o.copy()
	go o.write()
}

func (o *output) abandon() {
	if o.log != nil {
		_ = o.log.Close() // nothing was written
	}
}

// copy reads until no process has the other end any more.
func (o *output) copy() {
	defer close(o.done)
	defer close(o.chunks)
	buf := make([]byte, 32<<10)
	for {
		n, err := o.pipe.Read(buf)
		o.take(buf[:n])
		if err != nil {
			return
		}
	}
}

// take keeps a part of the output.
func (o *output) take(b []byte) {
	o.mu.Lock()
	o.total += int64(len(b))
	o.tail.write(b)
	lost := o.lost
	o.mu.Unlock()
	if lost != "" || o.log == nil || len(b) == 0 {
		return
	}
	kept := bytes.Clone(b[:min(int64(len(b)), o.left)])
	o.left -= int64(len(kept))
	if len(kept) < len(b) {
		const full = "the limit on output was reached"
		o.lose(full)
		kept = fmt.Appendf(kept, "\n[%s]\n", full)
	}
	select {
	case o.chunks <- kept:
	case <-o.late:
	}
}

// write writes to the log until there is no more.
func (o *output) write() {
	defer close(o.written)
	failed := false
	for b := range o.chunks {
		if failed {
			continue // nobody should wait
		}
		if _, err := o.log.Write(b); err != nil {
			failed = true
			o.lose("the log cannot be written: " + err.Error())
		}
	}
	if o.log == nil {
		return
	}
	if err := o.log.Close(); err != nil && !failed {
		o.lose("the log cannot be closed: " + err.Error())
	}
}

// lose notes why the log has not all, if that is the first reason.
func (o *output) lose(why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost == "" {
		o.lost = why
	}
}

// finish waits for the end of the output when the group has ended.
func (o *output) finish() {
	_ = o.pipe.SetReadDeadline(now().Add(pipeFor)) // a pipe can
	select {
	case <-o.written:
	case <-time.After(pipeFor + logFor):
		o.lose("the log has not taken it")
		close(o.late)
	}
	<-o.done
}

// close gives the pipe back.
func (o *output) close() { _ = o.pipe.Close() }

// sum is how much was written, and why not all of it is in the log.
func (o *output) sum() (total int64, lost string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total, o.lost
}

// tail keeps the last bytes that were written to it, twice as many as are shown
// so that it seldom has to move them.
type tail struct{ b []byte }

const tailMax = 16 << 10

func (t *tail) write(b []byte) {
	b = b[max(len(b)-tailMax, 0):]
	if len(t.b)+len(b) > 2*tailMax {
		t.b = append(t.b[:0], t.b[max(len(t.b)-tailMax, 0):]...)
	}
	t.b = append(t.b, b...)
}

func (t *tail) String() string { return string(t.b[max(len(t.b)-tailMax, 0):]) }
