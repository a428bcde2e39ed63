package arena

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

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
		f, err := openFile(path, os.O_RDWR|os.O_CREATE)
		if err != nil {
			return err
		}
		var a *Arena
		err = exclusively(ctx, f, left, func() error {
			mem, err := memoryOf(f, layout)
			if err != nil {
				return err
			}
			a = newArena(f, mem)
			return join(a)
		})
		if err != nil {
			_ = f.Close()
			return fmt.Errorf("%s: %w", path, err)
		}
		opened = a
		unclosed.Store(f, nil)
		return nil
	})
	return opened, err
}

func newArena(f *File, mem []uint64) *Arena {
	return &Arena{
		Words: mem[headerWords:], Geometry: geometryOf(mem),
		File: f, Locks: Locks{f}, Proc: Proc{f.Identity},
	}
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

// exclusively calls do with the lock of making held, if f is still the file that its path
// names.
func exclusively(ctx context.Context, f *File, patience time.Duration, do func() error) error {
	locks := Locks{f}
	if err := locks.lockMaking(ctx, patience); err != nil {
		return err
	}
	defer locks.Unlock(making)
	mine, err := f.file.Stat()
	if err != nil {
		return err
	}
	switch now, err := os.Stat(f.path); {
	case err == nil && os.SameFile(mine, now):
		return do()
	case err == nil || errors.Is(err, os.ErrNotExist):
		return errReplaced
	default:
		return err
	}
}

// Remove deletes the file at path. It fails with [ErrInUse] if another process holds a
// lock of it. It waits like [Open], as long as patience lasts.
func Remove(path string, patience time.Duration) error {
	return whileReplaced(patience, func(left time.Duration) error {
		f, err := openFile(path, os.O_RDWR)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // the file was not written
		if err := exclusively(context.Background(), f, left, func() error { return remove(f) }); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

func remove(f *File) error {
	s, err := examine(f)
	if err != nil {
		return err
	}
	switch now := s.condition(); {
	case now == foreign:
		return errForeign
	case s.inUse:
		return ErrInUse
	case now == blank:
		return errForeign
	}
	return os.Remove(f.path)
}

// Look reads the file at path as it is now, and changes nothing. The arena that it
// returns has a copy of the words, and reports which locks are held. It reads rather than
// maps, because a truncated file is then an error and not a fault.
func Look(path string) (*Arena, error) {
	f, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	mem, err := copyOf(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return newArena(f, mem), nil
}

// copyOf reads a file that is ready.
func copyOf(f *File) (mem []uint64, err error) {
	s, err := examine(f)
	if err != nil {
		return nil, err
	}
	switch now := s.condition(); {
	case now == foreign || now == blank:
		return nil, errForeign
	case now == stale && s.inUse:
		return nil, errBoot
	case now == stale:
		return nil, errors.New("it was made before the machine was last started; opening it makes it anew")
	case now == raw && Locks{f}.Held(making):
		return nil, errors.New("it is being made")
	case now == raw:
		return nil, errors.New("it is incomplete; opening it makes it anew")
	}
	if err := s.known(); err != nil {
		return nil, err
	}
	mem = make([]uint64, headerWords+s.header[headWords])
	_, err = io.ReadFull(io.NewSectionReader(f.file, 0, s.size), bytesOf(mem))
	return mem, err
}
