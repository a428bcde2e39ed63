package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// keepInMemory bounds, in bytes, the output that waits for its turn in memory.
// What is above goes to one file of the spool: a file for each job would run
// out of descriptors when the first of a million jobs is the slow one.
const keepInMemory = 16 << 20

// smallResult is the size in bytes up to which one job's output may wait in
// memory.
const smallResult = 64 << 10

// order hands results on in the order of their numbers.
type order struct {
	spool *Spool

	mu      sync.Mutex
	next    int            // the number whose turn it is; guarded by mu
	waiting map[int]Result // guarded by mu
	held    int64          // bytes in memory; guarded by mu
	spill   *os.File       // nil until needed; guarded by mu
	end     int64          // where the spill file ends; guarded by mu
}

func newOrder(spool *Spool) *order {
	return &order{spool: spool, next: 1, waiting: map[int]Result{}}
}

// put takes a result and calls write for all results whose turn has come. It
// holds the lock meanwhile: whoever comes later must also write later.
func (o *order) put(r Result, write func(Result) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Seq != o.next {
		return o.store(r)
	}
	o.next++
	if err := write(r); err != nil {
		return err
	}
	for {
		w, ok := o.waiting[o.next]
		if !ok {
			return nil
		}
		if err := o.release(w, write); err != nil {
			return err
		}
		o.next++
	}
}

// flush writes all that waits, in order, whatever is missing in between.
func (o *order) flush(write func(Result) error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	seqs := make([]int, 0, len(o.waiting))
	for seq := range o.waiting {
		seqs = append(seqs, seq)
	}
	slices.Sort(seqs)
	for _, seq := range seqs {
		if err := o.release(o.waiting[seq], write); err != nil {
			return err
		}
		o.next = seq + 1
	}
	return nil
}

// store puts a result's output away and frees its files.
func (o *order) store(r Result) error {
	o.waiting[r.Seq] = r
	if r.Capture == nil {
		return nil
	}
	size := r.Capture.size()
	if size <= smallResult && o.held+size <= keepInMemory {
		o.held += size
		mem := bytes.NewBuffer(make([]byte, 0, size))
		if err := r.Capture.copyTo(mem); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		r.Capture.rehome(bytes.NewReader(mem.Bytes()), 0)
		return nil
	}
	return o.storeInFile(&r, size)
}

func (o *order) storeInFile(r *Result, size int64) error {
	if o.spill == nil {
		f, err := o.spool.openDisk()
		if err != nil {
			return err
		}
		o.spill = f
	}
	if err := r.Capture.copyTo(io.NewOffsetWriter(o.spill, o.end)); err != nil {
		return o.spool.diskError(err)
	}
	r.Capture.rehome(o.spill, o.end)
	o.end += size
	return nil
}

// release writes a result that waited.
func (o *order) release(r Result, write func(Result) error) error {
	delete(o.waiting, r.Seq)
	if r.Capture != nil && r.Capture.home != io.ReaderAt(o.spill) {
		o.held -= r.Capture.size()
	}
	if err := write(r); err != nil {
		return err
	}
	if len(o.waiting) > 0 || o.end == 0 {
		return nil
	}
	// Nobody's output is in the file any more: give the space back.
	o.end = 0
	if _, err := o.spill.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if err := o.spill.Truncate(0); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}
