package arena

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// examine reads the header of a file and the values to compare it with.
func examine(f *File) (*survey, error) {
	s := &survey{header: make([]uint64, headerWords)}
	if _, err := f.file.ReadAt(bytesOf(s.header), 0); err != nil && err != io.EOF {
		return nil, err
	}
	info, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	s.size, s.inUse = info.Size(), Locks{f}.anyHeld(0, 0)
	s.here, err = thisMachine()
	return s, err
}

// memoryOf maps a file, header included, and makes it ready before if necessary. The
// caller must hold the lock of making.
func memoryOf(f *File, layout Layout) (mem []uint64, err error) {
	s, err := examine(f)
	if err != nil {
		return nil, err
	}
	switch now := s.condition(); {
	case now == foreign:
		return nil, errForeign
	case now == ready:
		if err := s.suits(layout); err != nil {
			return nil, replace(f, s, err)
		}
		return mapped.find(f, layout)
	case now == stale: // perhaps of a container that has ended its use, except for a late Release
		return nil, replace(f, s, errBoot)
	case s.inUse:
		return nil, replace(f, s, errDamaged)
	case now == blank && s.size != sizeOf(layout.Words):
		return nil, errBlank
	}
	if err := allocate(f, layout); err != nil {
		return nil, err
	}
	if mem, err = mapped.add(f, layout); err == nil {
		writeHeader(mem, layout, s.here)
	}
	return mem, err
}

// replace deletes a file that does not fit, so that a new one can be made, unless it is
// in use. Its memory stays as it is, because goroutines that are late may still access
// it.
func replace(f *File, s *survey, why error) error {
	if s.inUse {
		return fmt.Errorf("%w; %w", why, ErrInUse)
	}
	if err := os.Remove(f.path); err != nil {
		return fmt.Errorf("%w; it cannot be made anew: %w", why, err)
	}
	return errReplaced
}

// allocate gives the file its full size and sets it to zeros, except for the mark of an
// unfinished file: earlier content is of a process that died making the file, or was made
// before the machine was last started.
func allocate(f *File, layout Layout) error {
	if err := f.file.Truncate(0); err != nil {
		return err
	}
	_, err := f.file.WriteAt(bytesOf([]uint64{unfinished}), headMagic*8)
	if err == nil {
		err = f.control(func(fd int) error { return unix.Fallocate(fd, 0, 0, sizeOf(layout.Words)) })
		err = os.NewSyscallError("fallocate", err)
	}
	if err != nil {
		_ = f.file.Truncate(0) // releases the space that could be allocated
		_ = os.Remove(f.path)  // the path still names it; the next Open makes it anew
		return noRoom(f.path, err)
	}
	return nil
}

// noRoom adds to an allocation error what can be done.
func noRoom(path string, err error) error {
	switch dir := filepath.Dir(path); {
	case errors.Is(err, unix.ENOSPC):
		return fmt.Errorf("%w: make room in %s", err, dir)
	case errors.Is(err, unix.EOPNOTSUPP):
		return fmt.Errorf("%w: the file system of %s cannot set room aside; take a path on a tmpfs, as in /dev/shm", err, dir)
	}
	return err
}
