//go:build unix

package isolate

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

const (
	// pipeFor is how long finish waits for end of file on the pipe when the group has
	// ended: a process that left the group may hold the pipe open.
	pipeFor = time.Second
	// logFor is how long finish then waits for the log.
	logFor = 5 * time.Second
	// logAhead is the number of reads, of up to 32 KiB each, that a log may be behind
	// before the processes block.
	logAhead = 16
	// keepEvery is the interval between two calls of KeepTail.
	keepEvery = time.Second
)

// output reads everything that the processes write, and gives the log its beginning and
// its end.
type output struct {
	pipe *os.File       // the end that is read
	log  io.WriteCloser // may be nil; owned by write, which runs in a goroutine of its own
	left int64          // bytes that the log still accepts of the beginning; owned by copy
	bare bool           // the beginning does not end with a newline; owned by copy
	done chan struct{}  // closed when copy has returned

	chunks  chan []byte   // for the log; closed after the last one
	grown   chan struct{} // the end has changed; holds one signal
	written chan struct{} // closed when the log has all chunks and is closed
	late    chan struct{} // closed when finish no longer waits for the log

	mu    sync.Mutex
	total int64  // bytes read; guarded by mu
	lost  string // why the log lacks a part; guarded by mu
	shown tail   // for the error of the attempt; guarded by mu until copy has returned
	end   tail   // for the log; guarded by mu
}

// newOutput makes the pipe and returns the processes' end of it. The output closes the
// log; newOutput does so if it fails.
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

// begin starts to read. It is called when the processes have been started.
func (o *output) begin() {
	go o.copy()
	go o.write()
}

// abandon closes the log. It is called instead of begin if the start has failed.
func (o *output) abandon() {
	if o.log != nil {
		_ = o.log.Close() // nothing was written
	}
}

// copy reads until no process holds the other end of the pipe.
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
		o.recordLoss(fmt.Sprintf("%d bytes in the middle, because the limit on output was reached", missing))
	}
	o.send(text)
}

// take sends b to the log as far as it belongs to the beginning of the output, and keeps
// the rest for the end of the attempt.
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

// ending returns the text that completes the log if the attempt ends now, and the number
// of bytes that are missing before it. If any are, the text begins with a line that says
// so, followed by a whole line of the output unless that line is very long.
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

// send passes b to the log. It blocks while the log is logAhead chunks behind, until
// finish stops waiting for the log.
func (o *output) send(b []byte) {
	if o.log == nil || len(b) == 0 {
		return
	}
	select {
	case o.chunks <- b:
	case <-o.late:
	}
}

// write writes all chunks to the log and closes it. Meanwhile it calls KeepTail.
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
				continue // drop the chunk, so that no process blocks
			}
			if _, err := o.log.Write(b); err != nil {
				failed = true
				o.recordLoss("the log cannot be written: " + err.Error())
			}
		case <-grown:
			if soon == nil {
				soon = time.After(keepEvery)
			}
		case <-soon:
			soon = nil
			if text, _ := o.ending(); len(text) > 0 && !failed {
				_ = keeper.KeepTail(text) // a precaution only: the end is written after the last chunk
			}
		}
	}
}

func (o *output) closeLog(failed bool) {
	if o.log == nil {
		return
	}
	if err := o.log.Close(); err != nil && !failed {
		o.recordLoss("the log cannot be closed: " + err.Error())
	}
}

// recordLoss records why the log lacks a part of the output. The first reason stays.
func (o *output) recordLoss(why string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost == "" {
		o.lost = why
	}
}

// finish waits until the log has the whole output, for at most pipeFor + logFor. It is
// called when the group has ended.
func (o *output) finish() {
	_ = o.pipe.SetReadDeadline(clock.Now().Add(pipeFor)) // cannot fail: pipes support deadlines
	select {
	case <-o.written:
	case <-time.After(pipeFor + logFor):
		o.recordLoss(fmt.Sprintf("the log did not accept the output within %s", pipeFor+logFor))
		close(o.late)
	}
	<-o.done
}

// close closes the pipe.
func (o *output) close() { _ = o.pipe.Close() }

// sum returns the number of bytes of the output, and why the log lacks a part of them.
func (o *output) sum() (total int64, lost string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total, o.lost
}

// tail keeps the last bytes that were written to it, at most most. Its buffer has twice
// that size, so that a write rarely moves them.
type tail struct {
	most  int
	b     []byte
	total int64 // bytes that were written
}

const (
	tailMax = 16 << 10 // bytes of output in an ExitError
	endMax  = 64 << 10 // bytes of the end of the output in a log
)

func (t *tail) write(b []byte) {
	t.total += int64(len(b))
	b = b[max(len(b)-t.most, 0):]
	if len(t.b)+len(b) > 2*t.most {
		t.b = append(t.b[:0], t.b[max(len(t.b)-t.most, 0):]...)
	}
	t.b = append(t.b, b...)
}

// bytes returns the last bytes. They are valid until the next write.
func (t *tail) bytes() []byte { return t.b[max(len(t.b)-t.most, 0):] }

// cut reports whether more bytes were written than are kept.
func (t *tail) cut() bool { return t.total > int64(t.most) }
