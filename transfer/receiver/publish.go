package receiver

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"

	"github.com/stintgo/stint/internal/clock"
)

// publication gives a complete file its name: it verifies the data, makes it durable, journals a free
// name and renames the data to it. After an error, and after a crash, another publication does the rest; one of
// a file that has its name does nothing. The name is durable after [file.announce]. The caller must hold
// finishing, and be a user of the file and the writer of the upload, if that is a lane.
type publication struct {
	*file

	whole *upload // stands for the whole file
}

// finish publishes the file and calls Finished; it does the rest of what a former call has not
// done. u is the upload that stands for the whole file. The caller must be a user of the file and
// the writer of u, if u is a lane.
func (f *file) finish(u *upload) error {
	f.finishing.Lock()
	err := publication{f, u}.run()
	f.finishing.Unlock()
	if err != nil {
		return err
	}
	return f.announce(f.store.ctx)
}

func (p publication) run() error {
	if p.renamed { // changes only under finishing
		return nil
	}
	if placed, err := p.unlink(); placed || err != nil {
		return err
	}
	if err := p.arrived(); err != nil {
		return err
	}
	if err := p.verify(); err != nil {
		return err
	}
	info, err := p.data.Stat()
	if err != nil {
		return err
	}
	if info.Size() != p.whole.length { // bytes of requests that were not kept
		if err := p.data.Truncate(p.whole.length); err != nil {
			return err
		}
	}
	if err := p.disk.sync(p.data); err != nil {
		return p.removeUnsynced(err)
	}
	return p.place()
}

// removeUnsynced removes a file whose sync has failed with err. The kernel may have dropped the pages that it could not
// write, and reports that once: the next sync would succeed, and a file with holes be published (see fsync(2) and
// https://wiki.postgresql.org/wiki/Fsync_Errors).
func (p publication) removeUnsynced(err error) error {
	p.store.cfg.Logger.Error("the disk did not keep the data of an upload, which is removed: check the disk",
		slog.String("upload", p.id), slog.Any("error", err))
	status := http.StatusInternalServerError
	if isFull(err) {
		status = statusInsufficientStorage
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(
		refuse(status, "the disk of the server did not keep the file; the upload is removed: send it again"),
		p.removeLocked())
}

// publishFound publishes a file that Open has found complete: its client may have seen that, and then does not ask
// again. If that fails, as on a full disk, the sweeper calls it again.
func (f *file) publishFound() {
	f.mu.Lock()
	f.found = f.found && !f.renamed && !f.gone
	found := f.found
	f.mu.Unlock()
	if !found {
		return
	}
	f.finishing.Lock()
	defer f.finishing.Unlock()
	f.mu.Lock()
	if f.users > 0 { // a request, which publishes it
		f.mu.Unlock()
		return
	}
	whole := f.representative()
	err := f.use()
	f.mu.Unlock()
	if err == nil {
		err = publication{f, whole}.run()
		f.release()
	}
	if err != nil && !errorIs[*refusal](err) {
		f.store.cfg.Logger.Error("a complete upload cannot be published", slog.String("upload", f.id), slog.Any("error", err))
	}
}

// unlink removes the name of the data if the file also has the one that its journal says: a
// crash has separated the two steps of linkAndRemove. It reports whether that is so. From then
// on the file belongs to the application, so it is not verified again.
func (p publication) unlink() (placed bool, err error) {
	p.mu.Lock()
	rec := p.publish
	p.mu.Unlock()
	if rec == nil {
		return false, nil
	}
	data, err := p.data.Stat()
	if err != nil {
		return false, err
	}
	info, err := os.Lstat(filepath.Join(p.store.dir, rec.Name))
	if err != nil || !os.SameFile(data, info) {
		return false, nil //nolint:nilerr // whatever has the name, or nothing: it is another file
	}
	if err := p.disk.remove(p.dataName); err != nil {
		return false, err
	}
	p.placed()
	return true, nil
}

// verify compares the whole file with the SHA-256 that the client gave. A file that
// differs is removed: each byte of it has arrived, so sending more cannot help.
func (p publication) verify() error {
	want := p.whole.wantSHA256()
	if want == nil {
		return nil
	}
	sum := p.whole.sum
	if sum == nil || p.whole.summed != p.whole.length {
		sum = sha256.New()
		if err := p.copyTo(p.store.ctx, sum, 0, p.whole.length); err != nil {
			return err
		}
	}
	if bytes.Equal(sum.Sum(nil), want) {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(refuse(statusChecksumMismatch,
		"the file's SHA-256 is not the one that was given when the upload was created; the upload is removed"),
		p.removeLocked())
}

// place journals a free name for the file and renames it. Where Finished has to be called,
// the record is durable before the name is, so that a crash in between loses no call.
func (p publication) place() error {
	for n := 1; ; n++ {
		name := numbered(p.whole.fileName(), n)
		to := filepath.Join(p.store.dir, name)
		if _, err := os.Lstat(to); err == nil {
			continue
		}
		if err := p.recordName(name); err != nil {
			return err
		}
		err := p.disk.rename(p.dataName, to)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		p.placed()
		return nil
	}
}

func (p publication) recordName(name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.gone {
		return errUnknown
	}
	info, err := p.data.Stat()
	if err != nil {
		return err
	}
	rec := &publishRecord{Name: name, Size: p.whole.length, Modified: info.ModTime().UTC(), Inode: inode(info)}
	if p.whole.number < 0 {
		as := p.whole.record()
		rec.As = &as
	}
	if err := p.append(record{Publish: rec}); err != nil {
		return err
	}
	p.publish = rec
	if rec.As != nil {
		p.final = p.whole
	}
	if p.store.cfg.Finished == nil {
		return nil // a loss of power may cost the receipt, but no call
	}
	if err := p.disk.sync(p.log); err != nil {
		return err
	}
	return p.disk.syncDir(p.store.work)
}

// placed records in memory that the file has its name. Nothing that can fail comes between
// the rename and this: the file would be published, and not be known. The name is made
// durable by announce, which can be repeated.
func (p publication) placed() {
	p.mu.Lock()
	p.renamed, p.touched = true, clock.Now()
	p.mu.Unlock()
	p.store.quota.release(p.file)
	p.store.register(p.file)
}
