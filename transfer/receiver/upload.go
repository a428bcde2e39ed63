package receiver

import (
	"encoding/hex"
	"errors"
	"hash"
)

// upload is a resource with an ID: a lane, or the whole of a group.
type upload struct {
	file       *file
	number     int // among the lanes; -1 for the whole of a group
	id         string
	start      int64 // in the file
	partial    bool
	ordered    bool // a request finishes it, not its last byte
	oneRequest bool // one request sends all of it, or the upload is given up
	meta       map[string]string

	// Guarded by file.mu; changed by the writer only.
	length int64 // -1 while it is not known
	offset int64 // bytes received
	writer *session

	// Owned by the writer.
	sum     hash.Hash // SHA-256 of the first summed bytes; nil if nothing has to be verified
	summed  int64
	flushed int64 // the disk has begun to write the bytes before it
}

// newUpload makes the upload of a lane's record, at offset 0.
func (f *file) newUpload(rec laneRecord, number int) *upload {
	return &upload{
		file: f, number: number, id: rec.ID, start: rec.Start, length: rec.Length, partial: rec.Partial, ordered: rec.Ordered,
		oneRequest: rec.OneRequest, meta: rec.Metadata,
	}
}

func (u *upload) record() laneRecord {
	return laneRecord{
		ID: u.id, Start: u.start, Length: u.length, Partial: u.partial, Ordered: u.ordered, OneRequest: u.oneRequest,
		Metadata: u.meta,
	}
}

// fileName returns the name that the file gets if it is free.
func (u *upload) fileName() string {
	for _, name := range []string{u.meta[metaFilename], u.meta[metaName]} {
		if name := cleanName(name); name != "" {
			return name
		}
	}
	return u.id
}

// wantSHA256 returns the SHA-256 that the client gave for the whole, or nil.
func (u *upload) wantSHA256() []byte {
	want, err := hex.DecodeString(u.meta[metaSHA256])
	if err != nil || len(want) == 0 {
		return nil
	}
	return want
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
	err := f.disk.allocate(f.data, u.start+u.offset, n-u.offset)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		err = f.append(record{Length: &lengthRecord{Lane: u.number, Length: n}})
	}
	if err != nil { // a full disk may have reserved a part
		f.store.quota.set(f, u.offset)
		return errors.Join(err, f.data.Truncate(u.start+u.offset))
	}
	u.length = n
	return nil
}

// cancel removes an upload: a whole file, or one part of a group, whose file is removed with
// the last part. The file of a concatenation that an error has stopped is removed as a whole. A
// finished file stays; only its receipt is removed. The caller must be the writer, or u must
// be complete.
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
	case f.pinned:
		return refuse(statusConflict, "the upload is being concatenated; cancel the first part to give that up")
	case f.renamed && !f.announced:
		return refuse(statusConflict, "the upload is being finished; cancel it when that has ended")
	}
	if f.publish != nil || f.concat != nil || f.lanes.count() == 1 {
		return f.removeLocked()
	}
	f.dropLane(u)
	f.appendSoon(record{Drop: &u.number}) // a full disk must not prevent a removal, which frees space
	f.store.mu.Lock()
	delete(f.store.uploads, u.id)
	f.store.mu.Unlock()
	return nil
}
