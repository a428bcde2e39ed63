package filestore

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/internal/ownership"
)

// openRows opens a directory exclusively. It takes the lock first, and keeps it longest.
func openRows(dir string, cfg Config, files vfs.FS, tune func(*pebble.Options)) (*rows, error) {
	r := &rows{dir: dir, fs: files, cfg: cfg, failStop: newFailStop(files)}
	err := makeDir(files, dir)
	if err == nil {
		err = checkOwner(files, dir)
	}
	if err == nil {
		r.lock, err = files.Lock(files.PathJoin(dir, lockFile))
	}
	if err != nil {
		return nil, explain(files, dir, err)
	}
	if err := r.open(tune); err != nil {
		_ = r.Close() // Close fails for the same reason
		return nil, err
	}
	if cfg.MayLose > 0 {
		r.later = newSyncer(r)
	}
	return r, nil
}

// open opens the files of a directory that is locked.
func (r *rows) open(tune func(*pebble.Options)) (err error) {
	r.db, err = r.openDatabase(tune)
	switch failed := r.failStop.state(); {
	case failed != nil:
		return failed
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not read its files: change their owner or mode: %w", err)
	case noDescriptors(err):
		return withoutDescriptors(err)
	case err != nil:
		return unreadable(err)
	}
	return ifDamaged(r.begin())
}

// unreadable adds the remedy to the error of files that cannot be read.
func unreadable(err error) error {
	return fmt.Errorf("its files cannot be read; restore the directory from a copy, or check the disk: %w", err)
}

// ifDamaged adds the remedy to the error of a damaged file.
func ifDamaged(err error) error {
	if pebble.IsCorruptionError(err) {
		return unreadable(err)
	}
	return err
}

// explain adds the remedy to the error of a directory that cannot be opened.
func explain(files vfs.FS, dir string, err error) error {
	switch {
	case isLocked(err):
		// Only a process that does not hold the lock may look up its holder: closing a
		// file releases all locks that the process has on it.
		owner := "another process"
		if pid := holder(files.PathJoin(dir, lockFile)); pid > 0 {
			owner = fmt.Sprintf("process %d", pid)
		}
		return fmt.Errorf("%s has it open, and only one process at a time can: end that process, or send the calls to it: %w",
			owner, err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("this user may not write there: choose another directory, or change its owner: %w", err)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("there is a file in the way: choose another directory: %w", err)
	default:
		return err
	}
}

// isLocked reports whether err says that another process holds the lock. An error of
// opening the file is a PathError.
func isLocked(err error) bool {
	var opening *fs.PathError
	return !errors.As(err, &opening) && (errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES))
}

// lockFile is locked by the process that has the directory open.
const lockFile = "LOCK"

// ownerOnly is the mode of directories: payloads are private.
const ownerOnly = 0o700

// makeDir creates a directory so that it survives a loss of power.
func makeDir(files vfs.FS, dir string) error {
	var parents []string // of new directories
	for d := dir; ; d = files.PathDir(d) {
		if _, err := files.Stat(d); !errors.Is(err, fs.ErrNotExist) || files.PathDir(d) == d {
			break
		}
		parents = append(parents, files.PathDir(d))
	}
	if err := files.MkdirAll(dir, ownerOnly); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := syncDir(files, parent); err != nil {
			return err
		}
	}
	return nil
}

// checkOwner refuses a directory of the disk that another user owns, may write to, or has
// put a file in: that user could change the tasks.
func checkOwner(files vfs.FS, dir string) error {
	if files != vfs.Default {
		return nil // the file systems of tests have no users
	}
	return ownership.Directory(dir)
}

func syncDir(files vfs.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// openDatabase opens the database, twice if it is new: its first log is created before
// the database has its format, and in the old format a damaged record looks like the end
// of the log.
func (r *rows) openDatabase(tune func(*pebble.Options)) (*pebble.DB, error) {
	open := func() (*pebble.DB, error) {
		o := options(r.fs, r.failStop, r.cfg.Logger)
		tune(o)
		return pebble.Open(r.dir, o)
	}
	opened := make(chan *pebble.DB, 1) // buffered, because run may return first
	err := r.failStop.run(func() error {
		found, err := pebble.Peek(r.dir, r.fs)
		if err != nil {
			return err
		}
		if err := checkManifest(r.fs, r.dir, found); err != nil {
			return err
		}
		if !found.Exists || found.FormatMajorVersion < pebble.FormatNewest {
			db, err := open()
			if err != nil {
				return err
			}
			if err := db.Close(); err != nil {
				return err
			}
		}
		db, err := open()
		opened <- db
		return err
	})
	if err != nil {
		return nil, err
	}
	return <-opened, nil
}

// begin checks the format of the directory, and counts the opening.
func (r *rows) begin() error {
	if err := r.checkFormat(); err != nil {
		return err
	}
	epoch, err := r.Get(rowEpoch)
	if err != nil {
		return err
	}
	batch, err := r.Get(rowBatch)
	if err != nil {
		return err
	}
	r.epoch, r.batch = uint32(number(epoch))+1, number(batch)
	if r.tail, err = openTail(r.fs, r.dir, r.batch, r.cfg.Logger); err != nil {
		return err
	}
	if r.leaseLog, err = openLeaseLog(r.fs, r.dir); err != nil {
		return err
	}
	b := r.db.NewBatch()
	must(b.Set([]byte(rowFormat), binary.BigEndian.AppendUint32(nil, format), nil))
	must(b.Set([]byte(rowEpoch), binary.BigEndian.AppendUint32(nil, r.epoch), nil))
	return r.commit(b)
}

// checkFormat refuses rows that this version cannot read.
func (r *rows) checkFormat() error {
	value, err := r.Get(rowFormat)
	if err != nil {
		return err
	}
	found := number(value)
	if found > format {
		return fmt.Errorf("a newer version of this program wrote it (format %d, and this one knows %d): use that version",
			found, format)
	}
	if found > 0 {
		return nil
	}
	var foreign error
	err = r.Scan("\x00", "\xff", false, func(key string, _ []byte) bool {
		foreign = fmt.Errorf("the database in it is not a store (its first key is %.20q): choose another directory", key)
		return false
	})
	return cmp.Or(foreign, err)
}

// number decodes an integer of four or eight bytes; no bytes are 0.
func number(value []byte) uint64 {
	var n uint64
	for _, b := range value {
		n = n<<8 | uint64(b)
	}
	return n
}
