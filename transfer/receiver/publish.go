package receiver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stintgo/stint/internal/clock"
)

// finish gives a complete file its place and calls Finished; it does the rest of what a
// former call has not done. u is the upload that stands for the whole file. The caller
// must be a user of the file and the writer of u, if u is a lane.
func (f *file) finish(u *upload) error {
	f.finishing.Lock()
	err := f.publishAs(u)
	f.finishing.Unlock()
	if err != nil {
		return err
	}
	return f.announce(f.store.ctx)
}

// publishAs verifies the data, makes it durable and renames it; the name is durable after
// announce. The caller must hold finishing.
func (f *file) publishAs(u *upload) error {
	if f.renamed { // changes only under finishing
		return nil
	}
	if placed, err := f.unlink(); placed || err != nil {
		return err
	}
	if err := f.lanesArrived(); err != nil {
		return err
	}
	if err := f.verify(u); err != nil {
		return err
	}
	info, err := f.data.Stat()
	if err != nil {
		return err
	}
	if info.Size() != u.length { // bytes of requests that were not kept
		if err := f.data.Truncate(u.length); err != nil {
			return err
		}
	}
	if err := f.store.disk.sync(f.data); err != nil {
		return err
	}
	return f.place(u)
}

// unlink removes the name of the data if the file also has the one that its journal says: a
// crash has separated the two steps of linkAndRemove. It reports whether that is so. From then
// on the file belongs to the application, so it is not verified again.
func (f *file) unlink() (placed bool, err error) {
	f.mu.Lock()
	rec := f.publish
	f.mu.Unlock()
	if rec == nil {
		return false, nil
	}
	data, err := f.data.Stat()
	if err != nil {
		return false, err
	}
	info, err := os.Lstat(filepath.Join(f.store.dir, rec.Name))
	if err != nil || !os.SameFile(data, info) {
		return false, nil //nolint:nilerr // whatever has the name, or nothing: it is another file
	}
	if err := f.store.disk.remove(f.dataName()); err != nil {
		return false, err
	}
	f.placed()
	return true, nil
}

// verify compares the whole file with the SHA-256 that the client gave. A file that
// differs is removed: each byte of it has arrived, so sending more cannot help.
func (f *file) verify(u *upload) error {
	want := u.wantSHA256()
	if want == nil {
		return nil
	}
	sum := u.sum
	if sum == nil || u.summed != u.length {
		sum = sha256.New()
		if err := f.read(sum, u.length); err != nil {
			return err
		}
	}
	if bytes.Equal(sum.Sum(nil), want) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(refuse(statusChecksumMismatch,
		"the file's SHA-256 is not the one that was given when the upload was created; the upload is removed"),
		f.removeLocked())
}

// read writes the first length bytes of the data to w, unless the receiver is closed meanwhile.
func (f *file) read(w io.Writer, length int64) error {
	buf := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buf)
	for at := int64(0); at < length; {
		if f.store.ctx.Err() != nil {
			return errClosing
		}
		if err := f.store.disk.check("read"); err != nil {
			return err
		}
		n, err := f.data.ReadAt(buf[:min(bufferSize, length-at)], at)
		if n == 0 {
			return err
		}
		_, _ = w.Write(buf[:n]) // a hash returns no error
		at += int64(n)
	}
	return nil
}

// place journals a free name for the file and renames it. Where Finished has to be called,
// the record is durable before the name is, so that a crash in between loses no call.
func (f *file) place(u *upload) error {
	for n := 1; ; n++ {
		name := numbered(u.fileName(), n)
		to := filepath.Join(f.store.dir, name)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := f.recordName(u, name); err != nil {
			return err
		}
		err := f.store.disk.rename(f.dataName(), to)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		f.placed()
		return nil
	}
}

func (f *file) recordName(u *upload, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return errUnknown
	}
	info, err := f.data.Stat()
	if err != nil {
		return err
	}
	rec := &publishRecord{Name: name, Size: u.length, Modified: info.ModTime().UTC(), Inode: inode(info)}
	if u.number < 0 {
		as := u.record()
		rec.As = &as
	}
	if err := f.append(record{Publish: rec}); err != nil {
		return err
	}
	f.publish = rec
	if rec.As != nil {
		f.final = u
	}
	if f.store.cfg.Finished == nil {
		return nil // a loss of power may cost the receipt, but no call
	}
	if err := f.store.disk.sync(f.log); err != nil {
		return err
	}
	return f.store.disk.syncDir(f.store.work)
}

// placed records in memory that the file has its name. Nothing that can fail comes between
// the rename and this: the file would be published, and not be known. The name is made
// durable by announce, which can be repeated.
func (f *file) placed() {
	f.mu.Lock()
	f.renamed, f.touched = true, clock.Now()
	f.mu.Unlock()
	f.store.quota.set(f, 0)
	f.store.register(f)
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

// unannounced reports whether Finished has to be called.
func (f *file) unannounced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.renamed && !f.announced && !f.gone
}

// receiptSize is how long a journal may be that is kept as a receipt as it is: a block of most
// file systems. Another file would cost more than it saves.
const receiptSize = 4 << 10

// announce makes the name of a file that has its place durable and calls Finished, unless it
// has returned before, and makes the journal a receipt, which says where the file is: the
// journal itself, or, if that is long, a few lines in its place.
func (f *file) announce(ctx context.Context) error {
	f.finishing.Lock()
	defer f.finishing.Unlock()
	if !f.unannounced() {
		return nil
	}
	if err := f.store.disk.syncDir(f.store.dir); err != nil {
		return err
	}
	if call := f.store.cfg.Finished; call != nil {
		if err := call(ctx, f.upload()); err != nil {
			return fmt.Errorf("the file is complete, but what has to follow failed: %w", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.announced, f.touched = true, clock.Now()
	if f.log != nil && f.logSize < receiptSize {
		done := f.touched
		return f.append(record{Done: &done})
	}
	lines, err := encode(f.receipt()...)
	if err != nil {
		return err
	}
	return f.store.disk.replace(f.logName(), lines)
}

// receipt returns the journal of a file that is finished. The caller must hold mu.
func (f *file) receipt() []record {
	all := []record{{Version: journalVersion, File: &f.rec}}
	for _, u := range f.lanes {
		if u != nil && u.id != "" {
			lane := u.record()
			all = append(all, record{Lane: &lane})
		}
	}
	done := f.touched
	return append(all, record{Concat: f.concat}, record{Publish: f.publish}, record{Done: &done})
}

// representative returns the upload that stands for the whole file. The caller must hold
// mu.
func (f *file) representative() *upload {
	if f.final != nil {
		return f.final
	}
	i := slices.IndexFunc(f.lanes, func(u *upload) bool { return u != nil })
	return f.lanes[i]
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
