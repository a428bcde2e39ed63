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
	// keepEvery is how often a log keeps the end of an output that is too long.
	keepEvery = time.Second
)

// output takes what processes write, all of it, and has the log keep its beginning and
// its end.
type output struct {
	pipe *os.File       // the end that is read
	log  io.WriteCloser // or nil; owned by write, which is a goroutine of its own
	left int64          // bytes that may still be kept of the beginning; owned by copy
	bare bool           // the beginning does not end with a newline; owned by copy
	done chan struct{}  // copy is over

	chunks  chan []byte   // for the log; closed when there are no more
	grown   chan struct{} // the end has changed; holds one signal
	written chan struct{} // the log has taken all of them, and is closed
	late    chan struct{} // closed when nobody waits for the log any more

	mu    sync.Mutex
	total int64  // guarded by mu
	lost  string // why the log has not all; guarded by mu
	shown tail   // for the error of the attempt; guarded by mu; read by others when copy is over
	end   tail   // for the log; guarded by mu
}

// newOutput makes the pipe, whose other end is for the processes. It has the log
// closed, also if it fails.
func newOutput(log io.WriteCloser, most int64) (o *output, end *os.File, err error) {
	atEnd := min(most/2, endMax)
	o = &output{
		log: log, left: most - atEnd, shown: tail{most: tailMax}, end: tail{most: int(atEnd)},
		done: make(chan struct{}), chunks: make(chan []byte, logAhead), grown: make(chan struct{}, 1),
		written: make(chan struct{}), late: make(chan struct{}),
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
			break
		}
	}
	text, missing := o.ending()
	if missing > 0 {
		o.lose(fmt.Sprintf("%d bytes in the middle, because the limit on output was reached", missing))
	}
	o.send(text)
}

// take keeps a part of the output: what is behind the beginning waits for the end of
// the attempt.
func (o *output) take(b []byte) {
	begins := b[:min(int64(len(b)), o.left)]
	o.left -= int64(len(begins))
	if len(begins) > 0 {
		o.bare = begins[len(begins)-1] != '\n'
	}
	o.mu.Lock()
	o.total += int64(len(b))
	o.shown.write(b)
	complete := !o.end.cut()
	o.end.write(b[len(begins):])
	full := complete && o.end.cut()
	o.mu.Unlock()
	begins = bytes.Clone(begins)
	if full {
		if o.bare {
			begins = append(begins, '\n')
		}
		begins = fmt.Appendf(begins, "[the limit on output is reached: the last %d bytes follow when the attempt ends]\n",
			o.end.most)
	}
	o.send(begins)
	if o.left == 0 {
		select {
		case o.grown <- struct{}{}:
		default:
		}
	}
}

// ending is what the log gets if the attempt ends now, and how many bytes are missing
// between the beginning of the output and that. If any are, it begins with a line that
// says so, and then with a whole line of the output, unless that is very long.
func (o *output) ending() (text []byte, missing int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kept := o.end.bytes()
	if !o.end.cut() {
		return bytes.Clone(kept), 0
	}
	if i := bytes.IndexByte(kept[:len(kept)/4], '\n'); i >= 0 {
		kept = kept[i+1:]
	}
	missing = o.end.total - int64(len(kept))
	return fmt.Appendf(nil, "[%d bytes are missing here]\n%s", missing, kept), missing
}

// send hands bytes to the log, unless that is given up.
func (o *output) send(b []byte) {
	if o.log == nil || len(b) == 0 {
		return
	}
	select {
	case o.chunks <- b:
	case <-o.late:
	}
}

// write writes to the log until there is no more, and has it keep the end meanwhile.
func (o *output) write() {
	defer close(o.written)
	keeper, keeps := o.log.(TailKeeper)
	grown := o.grown
	if !keeps {
		grown = nil
	}
	var soon <-chan time.Time
	for failed := false; ; {
		select {
		case b, more := <-o.chunks:
			if !more {
				o.closeLog(failed)
				return
			}
			if failed {
				continue // nobody should wait
			}
			if _, err := o.log.Write(b); err != nil {
				failed = true
				o.lose("the log cannot be written: " + err.Error())
			}
		case <-grown:
			if soon == nil {
				soon = time.After(keepEvery)
			}
		case <-soon:
			soon = nil
			if text, _ := o.ending(); len(text) > 0 && !failed {
				_ = keeper.KeepTail(text) // a precaution: what counts is written in the end
			}
		}
	}
}

func (o *output) closeLog(failed bool) {
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

// tail keeps the last bytes that were written to it. It has room for twice as many, so
// that it seldom has to move them.
type tail struct {
	most  int
	b     []byte
	total int64 // bytes that were written
}

// tailMax is how many bytes an error has, and endMax how many of the end a log keeps.
const (
	tailMax = 16 << 10
	endMax  = 64 << 10
)

func (t *tail) write(b []byte) {
	t.total += int64(len(b))
	b = b[max(len(b)-t.most, 0):]
	if len(t.b)+len(b) > 2*t.most {
		t.b = append(t.b[:0], t.b[max(len(t.b)-t.most, 0):]...)
	}
	t.b = append(t.b, b...)
}

// bytes are the last ones, until the next write.
func (t *tail) bytes() []byte { return t.b[max(len(t.b)-t.most, 0):] }

// cut reports whether there have been more.
func (t *tail) cut() bool { return t.total > int64(t.most) }
