package receiver

import (
	"errors"
	"io/fs"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// file is a file that is being received, or the receipt of a finished one. A usual upload is a file
// with one lane. A file with a group has a lane for each partial upload, or for each chunk of the
// plain protocol, and its size is known from the beginning.
//
// Its life: receiving, published (renamed), announced (Finished has returned), removed. The steps
// between these states are those of [publication] and announce; a [concatenation] comes before the first.
type file struct {
	store *store
	id    string     // of the names of data and journal
	rec   fileRecord // does not change

	// finishing is held while the file is published, announced or joined from parts. It is
	// taken before mu.
	finishing sync.Mutex

	mu        sync.Mutex // guards what follows
	storage              // see there for what users need no mutex for
	lanes     lanes
	final     *upload        // of a group, once it has been published or is joined from parts
	concat    *concatenation // nil if the file is not made of parts
	publish   *publishRecord
	found     bool // complete when Open read the journal, and not published since
	renamed   bool
	announced bool
	gone      bool
	pinned    bool // a part of a concatenation
	touched   time.Time

	share share // of the quota
}

// uploads yields the uploads of the file: its lanes, and the whole if that has an ID of its own. The
// caller must hold mu.
func (f *file) uploads() iter.Seq[*upload] {
	return func(yield func(*upload) bool) {
		for u := range f.lanes.all() {
			if !yield(u) {
				return
			}
		}
		if f.final != nil {
			yield(f.final)
		}
	}
}

// use opens data and journal until release. A file that was removed is unknown. The caller must hold mu.
func (f *file) use() error {
	if f.gone {
		return errUnknown
	}
	err := f.storage.use()
	if errors.Is(err, fs.ErrNotExist) {
		return errUnknown
	}
	return err
}

// hold makes the caller a user, also of a finished file, whose receipt is not opened. The caller must hold mu.
func (f *file) hold() error {
	if f.renamed && !f.gone {
		f.users++
		return nil
	}
	return f.use()
}

// release ends a use.
func (f *file) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leave()
}

// addLane begins a lane within the file, or returns the one that has just this range: a
// client that has lost an answer asks twice. The caller must not hold mu, and must be a
// user.
func (f *file) addLane(rec laneRecord) (*upload, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	end := rec.Start + rec.Length
	switch {
	case f.gone:
		return nil, errUnknown
	case f.publish != nil || f.concat != nil:
		return nil, refuse(statusConflict, "the file is complete already")
	case rec.Start < 0 || rec.Length < 0 || end < rec.Start || end > f.rec.Total:
		return nil, refuse(statusBadRequest, "the part is not within the %d bytes of the file", f.rec.Total)
	case f.lanes.count() >= lanesMax, len(f.lanes) >= 16*lanesMax: // failed ones have records, too
		return nil, refuse(statusBadRequest, "a file can have at most %d parts", lanesMax)
	}
	if u, err := f.lanes.at(rec.Start, end); u != nil || err != nil {
		return u, err
	}
	if err := f.store.quota.count(f); err != nil {
		return nil, err
	}
	u := f.newUpload(rec, len(f.lanes))
	if err := f.append(record{Lane: &rec}); err != nil {
		f.store.quota.uncount(f)
		return nil, err
	}
	f.lanes = append(f.lanes, u)
	if u.id != "" {
		f.store.mu.Lock()
		f.store.uploads[u.id] = u
		f.store.mu.Unlock()
	}
	return u, nil
}

// arrived checks that all lanes of the file are complete.
func (f *file) arrived() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lanes.arrived()
}

// dropLane gives up a lane, whose record the caller appends. The caller must hold mu.
func (f *file) dropLane(u *upload) {
	f.lanes[u.number] = nil
	f.store.quota.uncount(f)
}

// removeLocked removes the file with its uploads. If the disk fails, the file counts for the quota until the sweeper
// has removed it.
func (f *file) removeLocked() error {
	f.gone = true
	f.store.unregister(f)
	if f.concat != nil && f.publish == nil {
		f.concat.unpin()
	}
	return f.discard()
}

// discard removes the data and the journal. The caller must hold mu.
func (f *file) discard() error {
	err := f.remove()
	if err == nil {
		f.store.quota.release(f)
	}
	f.store.keepLeftover(f, err != nil)
	return err
}

// expire removes the file if it has received nothing for the time of the configuration,
// or the receipt if it has been finished for so long.
func (f *file) expire(now time.Time) error {
	if !f.finishing.TryLock() {
		return nil
	}
	defer f.finishing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone || f.users > 0 || f.pinned || now.Sub(f.touched) < f.store.cfg.Expiry || f.renamed && !f.announced {
		return nil
	}
	return f.removeLocked()
}

// interrupt ends all requests that write the file.
func (f *file) interrupt(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for u := range f.uploads() {
		if u.writer != nil {
			u.writer.interrupt(cause)
		}
	}
}

// abandon ends the use of a file that may have been made for a lane that it then did not
// get.
func (f *file) abandon() {
	f.release()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users > 0 || f.gone || f.renamed || f.lanes.first() != nil {
		return
	}
	if err := f.removeLocked(); err != nil {
		f.store.cfg.Logger.Error("removing an empty upload failed", slog.String("upload", f.id), slog.Any("error", err))
	}
}

// isPublished reports whether the file has its place.
func (f *file) isPublished() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.renamed
}

// expiresIn returns how long the file is kept from now on if it receives nothing.
func (f *file) expiresIn() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.touched.Add(f.store.cfg.Expiry).Sub(clock.Now())
}
