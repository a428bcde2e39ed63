package output

import (
	"fmt"
	"io"
	"sync"
)

// Result is the result of a job for a printer.
type Result struct {
	Seq     int      // the job's number, from 1
	Tag     string   // precedes each line, if not empty
	Capture *Capture // the job's output, or nil; the printer closes it
	// Written is called when the output has been written, with its size in bytes. It may
	// be nil.
	Written func(bytes int64) error
}

// pieceSize is how many bytes are written at a time. The output of most jobs is one
// piece.
const pieceSize = 64 << 10

// Printer writes captured output to a sink, each job's in one piece: in the order in
// which the jobs end, or in the order of their numbers. It is safe for concurrent use.
type Printer struct {
	sink  *Sink
	order *order // nil: in the order in which jobs end
	bufs  sync.Pool
}

// NewPrinter returns a printer to sink. If keepOrder is set, output waits for all jobs
// with lower numbers, in memory and in spool.
func NewPrinter(sink *Sink, spool *Spool, keepOrder bool) *Printer {
	p := &Printer{sink: sink}
	p.bufs.New = func() any { return new([pieceSize]byte) }
	if keepOrder {
		p.order = newOrder(spool)
	}
	return p
}

// Print takes the output of an ended job, and writes it now or when it is next in order.
// If order is kept, every number must come exactly once, including those of jobs that
// were not run.
func (p *Printer) Print(r Result) error {
	if r.Capture != nil {
		if err := r.Capture.seal(); err != nil {
			r.Capture.Close()
			return err
		}
	}
	if p.order != nil {
		return p.order.put(r, p.write)
	}
	return p.write(r)
}

// Flush writes all waiting output: when a run was stopped, some lower numbers never come.
func (p *Printer) Flush() error {
	if p.order == nil {
		return nil
	}
	return p.order.flush(p.write)
}

// write writes one result, then calls Written.
func (p *Printer) write(r Result) error {
	defer r.Capture.Close()
	var size int64
	if r.Capture != nil {
		size = r.Capture.size()
	}
	if size > 0 {
		if err := p.writeCapture(&r); err != nil {
			return err
		}
	}
	if r.Written == nil {
		return nil
	}
	return r.Written(size)
}

func (p *Printer) writeCapture(r *Result) error {
	var failed error
	err := p.sink.together(func(w *locked) {
		for _, stream := range [...]Stream{Stdout, Stderr} {
			if failed == nil && r.Capture.streams[stream].size > 0 {
				failed = p.writeStream(w, stream, r)
			}
		}
	})
	if err != nil {
		return err
	}
	return failed
}

func (p *Printer) writeStream(w *locked, stream Stream, r *Result) error {
	from := r.Capture.reader(stream)
	if r.Tag != "" {
		return writeTagged(w, stream, from, r.Tag)
	}
	buf := p.bufs.Get().(*[pieceSize]byte)
	defer p.bufs.Put(buf)
	for left := r.Capture.streams[stream].size; left > 0; {
		piece := buf[:min(left, pieceSize)]
		n, err := io.ReadFull(from, piece)
		w.write(stream, piece[:n])
		if truncated(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		left -= int64(n)
	}
	return nil
}
