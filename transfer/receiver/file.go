package receiver

import (
	"encoding/hex"
	"errors"
	"hash"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// lanesMax is the largest number of lanes of a file that are kept.
const lanesMax = 1 << 16

// file is a file that is being received, with its data and journal in the directory of
// unfinished uploads, or the receipt of a finished one. A usual upload is a file with one
// lane. A file with a group has a lane for each partial upload, or for each chunk of the
// plain protocol, and its size is known from the beginning.
//
// Its life: receiving, published (renamed), announced (Finished has returned), removed.
type file struct {
	store *store
	id    string     // of the names of data and journal
	rec   fileRecord // does not change

	// finishing is held while the file is published, announced or joined from parts. It is
	// taken before mu.
	finishing sync.Mutex

	mu        sync.Mutex
	data, log *os.File // open while users > 0, unless only the receipt is used; else nil
	users     int
	logSize   int64
	lanes     []*upload // nil: cancelled
	final     *upload   // of a group, once it has been published or is joined from parts
	concat    *concatRecord
	absorbed  int // parts of concat that the file has
	publish   *publishRecord
	renamed   bool
	announced bool
	gone      bool
	pinned    bool // a part of a concatenation
	touched   time.Time

	reserved int64 // of the quotas; guarded by quota.mu
}

// upload is a resource with an ID: a lane, or the whole of a group.
type upload struct {
	file    *file
	number  int // among the lanes; -1 for the whole of a group
	id      string
	start   int64 // in the file
	partial bool
	ordered bool // a request finishes it, not its last byte
	meta    map[string]string

	// Guarded by file.mu; changed by the writer only.
	length int64 // -1 while it is not known
	offset int64 // bytes received
	writer *session

	// Owned by the writer.
	sum     hash.Hash // SHA-256 of the first summed bytes; nil if nothing has to be verified
	summed  int64
	flushed int64 // the disk has begun to write the bytes before it
}

func (f *file) dataName() string { return filepath.Join(f.store.work, f.id) }
func (f *file) logName() string  { return filepath.Join(f.store.work, f.id+logSuffix) }

// newUpload makes the upload of a lane's record, at offset 0.
func (f *file) newUpload(rec laneRecord, number int) *upload {
	return &upload{
		file: f, number: number, id: rec.ID, start: rec.Start, length: rec.Length, partial: rec.Partial, ordered: rec.Ordered,
		meta: rec.Metadata,
	}
}

func (u *upload) record() laneRecord {
	return laneRecord{ID: u.id, Start: u.start, Length: u.length, Partial: u.partial, Ordered: u.ordered, Metadata: u.meta}
}

func (f *file) make(lanes []laneRecord) (err error) {
	const exclusive = os.O_CREATE | os.O_EXCL | os.O_RDWR
	if f.data, err = os.OpenFile(f.dataName(), exclusive, 0o600); err != nil {
		return err
	}
	f.users = 1
	if err := f.store.disk.allocate(f.data, 0, max(f.rec.Total, 0)); err != nil {
		return err
	}
	if f.log, err = os.OpenFile(f.logName(), exclusive, 0o600); err != nil {
		return err
	}
	first := record{Version: journalVersion, Boot: bootID(), File: &f.rec}
	for i, lane := range lanes {
		f.lanes = append(f.lanes, f.newUpload(lane, i))
		if i == 0 {
			first.Lane = &lane
		}
	}
	return f.append(first)
}

// append writes a record to the journal. The caller must hold mu, and be a user. What a
// failed write leaves is overwritten by the next one.
func (f *file) append(rec record) error {
	line, err := rec.appendTo(nil)
	if err != nil {
		return err
	}
	n, err := f.store.disk.writeAt(f.log, line, f.logSize)
	if err != nil {
		return err
	}
	f.logSize += int64(n)
	return nil
}

// use opens data and journal until release. The caller must hold mu.
func (f *file) use() (err error) {
	if f.users > 0 {
		f.users++
		return nil
	}
	if f.data, err = os.OpenFile(f.dataName(), os.O_RDWR, 0); err != nil {
		return err
	}
	if f.log, err = os.OpenFile(f.logName(), os.O_RDWR, 0); err != nil {
		_ = f.data.Close()
		return err
	}
	f.users = 1
	return nil
}

// release ends a use.
func (f *file) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.users--
	if f.users == 0 {
		f.close()
	}
}

// close closes data and journal, if they are open. Both have been written without errors, or
// the journal does not say so.
func (f *file) close() {
	_ = f.data.Close()
	_ = f.log.Close()
	f.data, f.log = nil, nil
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
	case len(f.lanes) >= lanesMax:
		return nil, refuse(statusBadRequest, "a file can have at most %d parts", lanesMax)
	}
	for _, u := range f.lanes {
		switch {
		case u == nil:
		case u.start == rec.Start && u.length == rec.Length:
			return u, nil
		case u.start < end && rec.Start < u.start+u.length:
			return nil, refuse(statusConflict, "the part overlaps the one of the bytes %d to %d", u.start, u.start+u.length)
		}
	}
	u := f.newUpload(rec, len(f.lanes))
	if err := f.append(record{Lane: &rec}); err != nil {
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

// setLength records the length of an upload that had none, and reserves its bytes. The
// caller must be the writer.
func (u *upload) setLength(n int64) error {
	f := u.file
	if f.store.cfg.MaxSize > 0 && n > f.store.cfg.MaxSize {
		return f.store.tooLarge()
	}
	if n < u.offset {
		return refuse(statusBadRequest, "the length %d is less than the %d bytes that have been received", n, u.offset)
	}
	if err := f.store.quota.reserve(f, n); err != nil {
		return err
	}
	if err := f.store.disk.allocate(f.data, u.start+u.offset, n-u.offset); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.append(record{Length: &lengthRecord{Lane: u.number, Length: n}}); err != nil {
		return err
	}
	u.length = n
	return nil
}

// cancel removes an upload: a whole file, or one part of a group, whose file goes with
// the last part. A finished file stays; only its receipt is removed. The caller must be
// the writer, or u must be complete.
func (u *upload) cancel() error {
	f := u.file
	if !f.finishing.TryLock() {
		return refuse(statusConflict, "the upload is being finished")
	}
	defer f.finishing.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.gone:
		return errUnknown
	case f.pinned || (f.concat != nil && f.publish == nil):
		return refuse(statusConflict, "the upload is being concatenated")
	case f.publish != nil && !f.announced:
		return refuse(statusConflict, "the upload is being finished")
	}
	left := 0
	for _, lane := range f.lanes {
		if lane != nil && lane != u {
			left++
		}
	}
	if f.publish != nil || u.number < 0 || left == 0 {
		return f.removeLocked()
	}
	if err := f.append(record{Drop: &u.number}); err != nil {
		return err
	}
	f.lanes[u.number] = nil
	f.store.mu.Lock()
	delete(f.store.uploads, u.id)
	f.store.mu.Unlock()
	return nil
}

// removeLocked removes data and journal: the data first, so that a crash leaves no data
// that a journal does not name.
func (f *file) removeLocked() error {
	f.gone = true
	f.store.unregister(f)
	f.store.quota.set(f, 0)
	f.unpin()
	var all error
	for _, name := range []string{f.dataName(), f.logName()} {
		all = errors.Join(all, f.store.disk.remove(name))
	}
	return all
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
	if f.gone || f.users > 0 || f.pinned || now.Sub(f.touched) < f.store.cfg.Expiry || (f.publish != nil && !f.announced) {
		return nil
	}
	return f.removeLocked()
}

// interrupt ends all requests that write the file.
func (f *file) interrupt(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, u := range append(slices.Clone(f.lanes), f.final) {
		if u != nil && u.writer != nil {
			u.writer.interrupt(cause)
		}
	}
}

// wantSHA256 returns the SHA-256 that the client gave for the whole, or nil.
func (u *upload) wantSHA256() []byte {
	want, err := hex.DecodeString(u.meta[metaSHA256])
	if err != nil || len(want) == 0 {
		return nil
	}
	return want
}

// abandon ends the use of a file that may have been made for a lane that it then did not
// get.
func (f *file) abandon() {
	f.release()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.users > 0 || f.gone || slices.ContainsFunc(f.lanes, func(u *upload) bool { return u != nil }) {
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
