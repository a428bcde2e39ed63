package receiver

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/clock"
)

const (
	bufferSize = 256 << 10
	// recordEvery is the number of bytes after which a record is written. A kill -9 loses at most
	// these.
	recordEvery = 1 << 20
	// flushEvery is after how many bytes of an upload the disk begins to write them, so that the
	// sync at the end waits for little more than the last ones.
	flushEvery = 16 << 20
	// slotLate is how long a request waits for a slot before that is logged.
	slotLate = 10 * time.Second
	// slotMost is how long a request waits for a slot: clients take a longer silence for a failure, and the next
	// request for the upload would end the wait, and begin another one behind all others.
	slotMost = 20 * time.Second
)

// errBusy is the cause of the end of such a wait.
var errBusy = refuse(http.StatusServiceUnavailable, "all slots of the server are in use; try again")

// errTooLong is the error of a body that is longer than the rest of its upload.
var errTooLong = refuse(http.StatusRequestEntityTooLarge, "the body is longer than the rest of the upload")

//nolint:gochecknoglobals // a pool
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// intake is the receiving of one body into one upload.
type intake struct {
	*session
	body io.Reader
	sum  *checksum // of the body, or nil
	// trailer: the checksum comes after the body.
	trailer bool
	// whole: nothing is kept unless all of the body arrives. A checksum and a trailer imply it.
	whole bool
	// progress is called when the offset of the upload has grown, unless it is nil.
	progress func()

	at   int64  // offset that the data has on the disk
	from int64  // where the bytes of the next record begin
	crc  uint32 // of these bytes
}

// receive copies a body behind what the upload has, on a slot and at the rate of the
// configuration. What arrived before an error is kept, unless the intake says otherwise,
// or the body is longer than the upload, whose last chunk is then not kept.
func (r *requests) receive(req *http.Request, in *intake) error {
	ctx := in.ctx
	tier := r.cfg.Priority(req)
	if !tier.Valid() {
		tier = stint.Normal
	}
	key := r.cfg.Key(req)
	if r.cfg.Slots != nil {
		permit, err := r.acquire(ctx, in.w, tier, key)
		if err != nil {
			return err
		}
		defer permit.Release()
	}
	in.body = &bodyReader{session: in.session, body: in.body, silence: r.cfg.ReadTimeout}
	if r.cfg.Rate != nil {
		in.body = r.cfg.Rate.At(tier).Key(key).Reader(ctx, in.body)
	}
	in.whole = in.whole || in.sum != nil || in.trailer
	in.at, in.from = in.u.offset, in.u.offset
	if err := in.startReading(); err != nil {
		return err
	}
	defer in.releaseRoom()
	err := in.copy()
	in.stopReading()
	if err == nil && in.trailer {
		err = in.readTrailer(req)
	}
	if err == nil && in.sum != nil && !in.sum.matches(in.crc) {
		err = refuse(statusChecksumMismatch, "the checksum of the body is not the one that the request gives")
	}
	// The context of a request also ends when its connection fails: then err says more.
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if err != nil && (in.whole || errors.Is(err, errTooLong)) {
		in.u.sum = nil // it has seen bytes that are not kept
		return err
	}
	return errors.Join(err, in.record())
}

// releaseRoom releases the room of bytes that are not kept.
func (in *intake) releaseRoom() {
	u, f := in.u, in.u.file
	if in.at == u.offset || u.length >= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.data.Truncate(u.start + u.offset); err == nil && !f.gone {
		f.store.quota.set(f, u.offset)
	}
}

// readNothing reads the body of a request for an upload that is complete. It has no bytes: a body whose length is not
// known has to be read for that.
func (in *intake) readNothing(req *http.Request) error {
	switch {
	case req.ContentLength > 0:
		return errTooLong
	case req.ContentLength == 0:
		return nil
	}
	in.at = in.u.offset
	in.body = &bodyReader{session: in.session, body: in.body, silence: in.u.file.store.cfg.ReadTimeout}
	if err := in.startReading(); err != nil {
		return err
	}
	defer in.stopReading()
	return in.copy()
}

// readTrailer takes the checksum from the trailer. The algorithm is known only now, so the body is
// read again, from the page cache.
func (in *intake) readTrailer(req *http.Request) (err error) {
	if in.sum, err = parseChecksum(req.Trailer.Get(uploadChecksum)); err != nil {
		return err
	}
	if in.sum == nil {
		return refuse(statusBadRequest, "the trailer Upload-Checksum was announced, and is missing")
	}
	if in.sum.hash == nil {
		return nil
	}
	_, err = io.Copy(in.sum.hash, io.NewSectionReader(in.u.file.data, in.u.start+in.from, in.at-in.from))
	return err
}

// copy reads until the body ends.
func (in *intake) copy() error {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for {
		room := in.room()
		n, err := in.body.Read(buf[:max(min(room, bufferSize), 1)])
		if n > 0 && room <= 0 {
			return errTooLong
		}
		if n > 0 {
			if err := in.write(buf[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return refuse(http.StatusRequestTimeout, "the client was silent for longer than %v", in.u.file.store.cfg.ReadTimeout)
		case err != nil:
			return &cutError{err}
		}
	}
}

// cutError is an error of reading a body: its client or the connection is to blame.
type cutError struct{ err error }

func (e *cutError) Error() string { return e.err.Error() }
func (e *cutError) Unwrap() error { return e.err }

// room returns how many bytes the upload may still receive.
func (in *intake) room() int64 {
	if in.u.length >= 0 {
		return in.u.length - in.at
	}
	if most := in.u.file.store.cfg.MaxSize; most > 0 {
		return most - in.at
	}
	return bufferSize
}

// write writes bytes to their place, and records them if there are enough for that.
func (in *intake) write(p []byte) error {
	u, f := in.u, in.u.file
	if u.length < 0 {
		if err := f.store.quota.reserve(f, in.at+int64(len(p))); err != nil {
			return err
		}
	}
	n, err := f.disk.writeAt(f.data, p, u.start+in.at)
	p = p[:n]
	in.at += int64(n)
	in.crc = crc32.Update(in.crc, castagnoli, p)
	if in.sum != nil && in.sum.hash != nil {
		in.sum.hash.Write(p)
	}
	if u.sum != nil {
		u.sum.Write(p)
		u.summed = in.at
	}
	if err != nil {
		return err
	}
	if in.at-u.flushed >= flushEvery {
		startFlush(f.data, u.start+u.flushed, in.at-u.flushed)
		u.flushed = in.at
	}
	// The end of an upload is recorded when it is known that the body has no more.
	if in.whole || in.at-in.from < recordEvery || in.at == u.length {
		return nil
	}
	if err := in.record(); err != nil {
		return err
	}
	if in.progress != nil {
		in.progress()
	}
	return nil
}

// record makes what has been received a part of the upload.
func (in *intake) record() error {
	if in.at == in.from {
		return nil
	}
	u, f := in.u, in.u.file
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		u.sum = nil
		return errUnknown
	}
	if err := f.append(record{Reach: &reachRecord{Lane: u.number, To: in.at, CRC: in.crc}}); err != nil {
		u.sum = nil // it has seen bytes that are not kept
		return err
	}
	u.offset, f.touched = in.at, clock.Now()
	in.from, in.crc = in.at, 0
	return nil
}

// watchSHA256 begins the SHA-256 of an upload that is verified when it is finished. If it
// cannot be computed while the bytes arrive, they are read again then.
func (u *upload) watchSHA256() {
	if u.offset == 0 && u.wantSHA256() != nil {
		u.sum, u.summed = sha256.New(), 0
	}
}

// logWait logs that a request has waited for a slot for slotLate: slow clients may hold all of them.
func (r *requests) logWait() {
	s := r.cfg.Slots.Stats()
	r.cfg.Logger.Warn("requests wait for a slot", slog.Duration("waited", slotLate), slog.Int("waiting", s.Queued),
		slog.Int("running", s.Running), slog.Int("limit", s.Limit))
}

// acquire waits for a slot. If all are in use, the headers of the answer say when to try again.
func (r *requests) acquire(
	ctx context.Context, w http.ResponseWriter, tier stint.Priority, key string,
) (stint.Permit, error) {
	late := time.AfterFunc(slotLate, r.logWait)
	defer late.Stop()
	wait, stop := context.WithTimeoutCause(ctx, slotMost, errBusy)
	defer stop()
	permit, err := r.cfg.Slots.At(tier).Key(key).Acquire(wait)
	switch {
	case err == nil:
		return permit, nil
	case ctx.Err() != nil:
		return permit, context.Cause(ctx)
	case errors.Is(err, errBusy), errors.Is(err, stint.ErrQueueFull):
		w.Header().Set("Retry-After", "1")
		return permit, errBusy
	}
	return permit, refuse(http.StatusServiceUnavailable, "no slot for the upload: %v", err)
}
