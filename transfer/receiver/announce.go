package receiver

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/stintgo/stint/internal/clock"
)

// unannounced reports whether Finished has to be called.
func (f *file) unannounced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.renamed && !f.announced && !f.gone
}

// receiptSize is how long a journal may be that is kept as a receipt as it is: a block of most
// file systems. Another file would cost more than it saves.
const receiptSize = 4 << 10

// hookError is an error of Finished: the file has its name, which is durable.
type hookError struct{ err error }

func (e *hookError) Error() string {
	return fmt.Sprintf("the file is complete, but what has to follow failed: %v", e.err)
}
func (e *hookError) Unwrap() error { return e.err }

// announce makes the name of a file that has its place durable and calls Finished, unless it
// has returned before, and makes the journal a receipt, which says where the file is: the
// journal itself, or, if that is long, a few lines in its place.
func (f *file) announce(ctx context.Context) error {
	f.finishing.Lock()
	defer f.finishing.Unlock()
	if !f.unannounced() {
		return nil
	}
	if err := f.disk.syncDir(f.store.dir); err != nil {
		return err
	}
	if call := f.store.cfg.Finished; call != nil {
		if err := call(ctx, f.upload()); err != nil {
			return &hookError{err}
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.announced, f.touched = true, clock.Now()
	defer f.forgetChunks()
	if f.log != nil && f.logSize < receiptSize {
		done := f.touched
		return f.append(record{Done: &done})
	}
	lines, err := encode(f.receipt()...)
	if err != nil {
		return err
	}
	return f.disk.replace(f.logName, lines)
}

// forgetChunks frees the memory of the chunks of a file that is finished, which no request names. The
// caller must hold mu.
func (f *file) forgetChunks() {
	for i, u := range f.lanes {
		if u != nil && u.id == "" {
			f.lanes[i] = nil
		}
	}
}

// receipt returns the journal of a file that is finished. The caller must hold mu.
func (f *file) receipt() []record {
	all := []record{{Version: journalVersion, File: &f.rec}}
	for u := range f.lanes.all() {
		if u.id != "" {
			lane := u.record()
			all = append(all, record{Lane: &lane})
		}
	}
	var concat *concatRecord
	if f.concat != nil {
		concat = &f.concat.concatRecord
	}
	done := f.touched
	return append(all, record{Concat: concat}, record{Publish: f.publish}, record{Done: &done})
}

// representative returns the upload that stands for the whole file. The caller must hold
// mu.
func (f *file) representative() *upload {
	if f.final != nil {
		return f.final
	}
	return f.lanes.first()
}

// upload returns the finished file as the application sees it.
func (f *file) upload() Upload {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.representative()
	return Upload{
		ID: u.id, Name: u.fileName(), Path: filepath.Join(f.store.dir, f.publish.Name), Size: f.publish.Size,
		Key: f.rec.Key, Priority: f.rec.Priority, Metadata: u.meta, Created: f.rec.Created,
	}
}
