package arena

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// Arena is a mapped file of shared memory. All methods may be called from any
// goroutine.
type Arena struct {
	file *os.File
	kept int // the descriptor that another program is to inherit, or none
	path string
	id   [2]uint64
	mem  []uint64
}

// MakePrivate returns the directory of this user's files. It makes the directory if there
// is none.
func MakePrivate() (string, error) {
	if err := makePrivate(privateDir()); err != nil {
		return "", err
	}
	return Private()
}

func makePrivate(dir string) error {
	switch err := os.Mkdir(dir, 0o700); {
	case errors.Is(err, os.ErrExist):
		return nil
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: there is no %s; give the path of a file elsewhere", err, filepath.Dir(dir))
	default:
		return err
	}
}

// Private returns the directory of this user's files.
func Private() (string, error) {
	dir := privateDir()
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return "", &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	return dir, guard(dir, &st, unix.S_IFDIR)
}

func privateDir() string { return filepath.Join("/dev/shm", "stint-"+strconv.Itoa(os.Geteuid())) }

// guard returns an error if a file is of another kind, or accessible to other users.
func guard(path string, st *unix.Stat_t, kind uint32) error {
	switch {
	case st.Mode&unix.S_IFMT != kind:
		return fmt.Errorf("%w: %s has mode %o", ErrNotOurs, path, st.Mode)
	case st.Uid != uint32(os.Geteuid()):
		return fmt.Errorf("%w: %s belongs to user %d", ErrNotOurs, path, st.Uid)
	case st.Mode&0o077 != 0:
		return fmt.Errorf("%w: %s has mode %#o, want no more than %#o", ErrNotOurs, path, st.Mode&0o777, st.Mode&0o700)
	}
	return nil
}

// Open maps the file at path, and calls join to take part in it. If there is no file, it
// makes one and allocates all of its space, so that a full disk is an error here and not
// a signal later. If the file does not fit and no process holds a lock of it, Open
// deletes it and makes it anew.
//
// While join runs no other process opens or removes the file, and Open sees the locks of
// all participants. It waits for processes that came before, and fails with [ErrStuck]
// when patience is over or ctx has ended, in the latter case with its cause too. It does
// not check ctx if it need not wait.
func Open(
	ctx context.Context, path string, layout Layout, patience time.Duration, join func(*Arena) error,
) (*Arena, error) {
	if err := layout.validate(); err != nil {
		return nil, err
	}
	var opened *Arena
	err := whileReplaced(patience, func(left time.Duration) error {
		a, err := open(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return err
		}
		if err := a.exclusively(ctx, left, func() error { return a.make(layout, join) }); err != nil {
			_ = a.Close()
			return fmt.Errorf("%s: %w", path, err)
		}
		opened = a
		unclosed.Store(a, nil)
		return nil
	})
	return opened, err
}

// errReplaced says that the file was deleted while it was opened.
var errReplaced = errors.New("the file is replaced again and again")

// whileReplaced calls f again while the file that it opens is replaced, with the rest
// of the patience, and once more after that is used up.
func whileReplaced(patience time.Duration, f func(left time.Duration) error) error {
	until := Now() + int64(patience)
	for last := false; ; {
		left := max(time.Duration(until-Now()), 0)
		if err := f(left); last || !errors.Is(err, errReplaced) {
			return err
		}
		last = left == 0
	}
}

// open opens a file to which no other user has access.
func open(path string, flags int) (*Arena, error) {
	file, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if flags&os.O_CREATE != 0 && errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: make the directory %s first", err, filepath.Dir(path))
	}
	if err != nil {
		return nil, err
	}
	a := &Arena{file: file, path: path, kept: none}
	var st unix.Stat_t
	switch err = a.control(func(fd int) error { return unix.Fstat(fd, &st) }); {
	case err != nil:
		err = &os.PathError{Op: "fstat", Path: path, Err: err}
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = fmt.Errorf("%s: %w: it is %s", path, errForeign, kindOf(st.Mode))
	default:
		err = guard(path, &st, unix.S_IFREG)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	a.id = [2]uint64{uint64(st.Dev), st.Ino} //nolint:unconvert // Dev has another size elsewhere
	return a, nil
}

// kindOf names a kind of file that has no bytes of its own.
func kindOf(mode uint32) string {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return "a directory"
	case unix.S_IFIFO:
		return "a named pipe"
	default:
		return "a device"
	}
}

// exclusively calls f with the lock of making held, if the file is still the one that its
// path names.
func (a *Arena) exclusively(ctx context.Context, patience time.Duration, f func() error) error {
	if err := a.lockMaking(ctx, patience); err != nil {
		return err
	}
	defer a.Unlock(making)
	mine, err := a.file.Stat()
	if err != nil {
		return err
	}
	switch now, err := os.Stat(a.path); {
	case err == nil && os.SameFile(mine, now):
		return f()
	case err == nil || errors.Is(err, os.ErrNotExist):
		return errReplaced
	default:
		return err
	}
}

// make makes the file ready if necessary, maps it and calls join.
func (a *Arena) make(layout Layout, join func(*Arena) error) error {
	s, err := a.survey()
	if err != nil {
		return err
	}
	switch now := s.condition(); {
	case now == foreign:
		return errForeign
	case now == ready:
		if err := s.suits(layout); err != nil {
			return a.replace(err)
		}
		err = a.mapAgain(layout)
	case now == stale && a.used():
		return a.replace(errBoot)
	case a.used():
		return a.replace(errDamaged)
	case now == blank && s.size != sizeOf(layout.Words):
		return errBlank
	default:
		if err = a.allocate(layout); err == nil {
			err = a.mmap(layout)
		}
		if err == nil {
			a.initialize(layout, s.here)
		}
	}
	if err != nil {
		return err
	}
	return join(a)
}

// survey reads the header and the values to compare it with.
func (a *Arena) survey() (*survey, error) {
	s := &survey{header: make([]uint64, headerWords)}
	if _, err := a.file.ReadAt(bytesOf(s.header), 0); err != nil && err != io.EOF {
		return nil, err
	}
	info, err := a.file.Stat()
	if err != nil {
		return nil, err
	}
	s.size = info.Size()
	s.here, err = thisMachine()
	return s, err
}

// replace deletes a file that does not fit, so that a new one can be made, unless it is
// in use. Its memory stays as it is, because goroutines that are late may still access
// it.
func (a *Arena) replace(why error) error {
	if a.used() {
		return fmt.Errorf("%w; %w", why, ErrInUse)
	}
	if err := os.Remove(a.path); err != nil {
		return fmt.Errorf("%w; it cannot be made anew: %w", why, err)
	}
	return errReplaced
}

// Remove deletes the file at path. It fails with [ErrInUse] if another process holds a
// lock of it. It waits like [Open], as long as patience lasts.
func Remove(path string, patience time.Duration) error {
	return whileReplaced(patience, func(left time.Duration) error {
		a, err := open(path, os.O_RDWR)
		if err != nil {
			return err
		}
		defer a.Close() //nolint:errcheck // the file was not written
		if err := a.exclusively(context.Background(), left, a.remove); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

func (a *Arena) remove() error {
	s, err := a.survey()
	if err != nil {
		return err
	}
	switch now := s.condition(); {
	case now == foreign:
		return errForeign
	case a.used():
		return ErrInUse
	case now == blank:
		return errForeign
	}
	return os.Remove(a.path)
}

// Look reads the file at path as it is now, and changes nothing. The arena that it
// returns has a copy of the words, and reports which locks are held. It reads rather than
// maps, because a truncated file is then an error and not a fault.
func Look(path string) (*Arena, error) {
	a, err := open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	if err := a.read(); err != nil {
		_ = a.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

func (a *Arena) read() error {
	s, err := a.survey()
	if err != nil {
		return err
	}
	switch now := s.condition(); {
	case now == foreign || now == blank:
		return errForeign
	case now == stale && a.used():
		return errBoot
	case now == stale:
		return errors.New("it was made before the machine was last started; opening it makes it anew")
	case now == raw && a.Held(making):
		return errors.New("it is being made")
	case now == raw:
		return errors.New("it is incomplete; opening it makes it anew")
	}
	if err := s.known(); err != nil {
		return err
	}
	a.mem = make([]uint64, headerWords+s.header[headWords])
	_, err = io.ReadFull(io.NewSectionReader(a.file, 0, s.size), bytesOf(a.mem))
	return err
}

// allocate gives the file its full size and sets it to zeros, except for the mark of an
// unfinished file: earlier content is of a process that died making the file, or was made
// before the machine was last started.
func (a *Arena) allocate(layout Layout) error {
	if err := a.file.Truncate(0); err != nil {
		return err
	}
	_, err := a.file.WriteAt(bytesOf([]uint64{unfinished}), headMagic*8)
	if err == nil {
		err = a.control(func(fd int) error { return unix.Fallocate(fd, 0, 0, sizeOf(layout.Words)) })
		err = os.NewSyscallError("fallocate", err)
	}
	if err != nil {
		_ = a.file.Truncate(0) // releases the space that could be allocated
		_ = os.Remove(a.path)  // the path still names it; the next Open makes it anew
		return a.noRoom(err)
	}
	return nil
}

// noRoom adds to an allocation error what can be done.
func (a *Arena) noRoom(err error) error {
	switch dir := filepath.Dir(a.path); {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: make room in %s", err, dir)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w: the file system of %s cannot set room aside; take a path on a tmpfs, as in /dev/shm", err, dir)
	}
	return err
}

func (a *Arena) initialize(layout Layout, here machine) {
	a.mem[headVersion] = Version
	a.mem[headWords] = uint64(layout.Words)
	copy(a.mem[headBoot:], here.boot[:])
	a.mem[headClock] = here.clock
	a.mem[headGeometry] = uint64(len(layout.Geometry))
	copy(a.mem[headGeometry+1:], layout.Geometry)
	atomic.StoreUint64(&a.mem[headMagic], magic)
}

// Identity is the same for arenas of the same file, and different for different files.
func (a *Arena) Identity() [2]uint64 { return a.id }

// Geometry returns the geometry that the file was made for.
func (a *Arena) Geometry() []uint64 { return geometryOf(a.mem) }
