package output

import (
	"fmt"
	"io"
	"sync"
)

// Result is a job that has ended, as a printer takes it.
type Result struct {
	Seq     int      // the job's number, from 1
	Tag     string   // goes before each line, if not empty
	Capture *Capture // its output, or nil; the printer closes it
	// Written is called when the output has been written, with its size in
	// bytes. It may be nil.
	Written func(bytes int64) error
}

// pieceSize is how many bytes are written at a time. The output of most jobs is
// one piece.
const pieceSize = 64 << 10

// Printer writes captured output to a sink, each job's in one piece: in the
// order in which the jobs end, or in the order of their numbers. Its methods
// may be called from any goroutine.
type Printer struct {
	sink  *Sink
	order *order // nil: as jobs end
	bufs  sync.Pool
}

// NewPrinter returns a printer to sink. Where keepOrder is set, output waits
// for all jobs of lower numbers, in memory and in spool.
func NewPrinter(sink *Sink, spool *Spool, keepOrder bool) *Printer {
	p := &Printer{sink: sink}
	p.bufs.New = func() any { return new([pieceSize]byte) }
	if keepOrder {
		p.order = newOrder(spool)
	}
	return p
}

// Print takes the output of a job that has ended, and writes it now or when its
// turn comes. Under KeepOrder every number must come exactly once, also those of
// jobs that were not run.
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

// Flush writes what still waits for its turn: with a run that was stopped,
// some of the numbers before it never come.
func (p *Printer) Flush() error {
	if p.order == nil {
		return nil
	}
	return p.order.flush(p.write)
}

// write writes one result, then tells that it was.
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
		if _, err := io.ReadFull(from, piece); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		w.write(stream, piece)
		left -= int64(len(piece))
	}
	return nil
}
