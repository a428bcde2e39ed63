package output

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// keepInMemory limits the waiting output in memory, in bytes. The rest goes to one file
// of the spool: one file per job would use up the descriptors when the first of a million
// jobs is slow.
const keepInMemory = 16 << 20

// smallResult is the size in bytes up to which the output of one job may wait in memory.
const smallResult = 64 << 10

// order passes on results in the order of their numbers.
type order struct {
	spool *Spool

	mu      sync.Mutex
	next    int            // the next number to write; guarded by mu
	waiting map[int]Result // guarded by mu
	held    int64          // bytes in memory; guarded by mu
	spill   *os.File       // nil until needed; guarded by mu
	end     int64          // the end of the data in spill; guarded by mu
}

func newOrder(spool *Spool) *order {
	return &order{spool: spool, next: 1, waiting: map[int]Result{}}
}

// put takes a result and calls write for all results that are next in order. It holds the
// lock meanwhile, so that later calls write later.
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

// flush writes all waiting results in order, skipping missing numbers.
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

// store copies a result's output and closes its files. A million results may wait, most of them with
// a little output or none, so nothing else stays in memory.
func (o *order) store(r Result) error {
	if r.Capture != nil && r.Capture.size() == 0 {
		r.Capture.Close()
		r.Capture = nil
	}
	o.waiting[r.Seq] = r
	if r.Capture == nil {
		return nil
	}
	size := r.Capture.size()
	if size <= smallResult && o.held+size <= keepInMemory {
		text, err := r.Capture.bytes()
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		o.held += int64(len(text))
		r.Capture.rehome(bytes.NewReader(text), 0)
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
	o.end = (o.end + size + block - 1) / block * block // so that the space of each can be freed
	return nil
}

// block is a multiple of the blocks of usual file systems.
const block = 4096

// release writes a result that has waited.
func (o *order) release(r Result, write func(Result) error) error {
	delete(o.waiting, r.Seq)
	spilled := r.Capture != nil && o.spill != nil && r.Capture.home == io.ReaderAt(o.spill)
	if r.Capture != nil && !spilled {
		o.held -= r.Capture.size()
	}
	if err := write(r); err != nil {
		return err
	}
	if spilled { // there may always be another result that waits
		_ = punch(o.spill, r.Capture.offset, (r.Capture.size()+block-1)/block*block) // where it is supported
	}
	if len(o.waiting) > 0 || o.end == 0 {
		return nil
	}
	// No output in the file is waiting any more: free the space.
	o.end = 0
	if _, err := o.spill.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	if err := o.spill.Truncate(0); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	return nil
}
