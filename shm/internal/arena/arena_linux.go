package arena

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arena is a file of shared memory that is mapped. All methods may be called from
// any goroutine.
type Arena struct {
	file *os.File
	fd   int
	id   [2]uint64
	mem  []uint64
}

// Private returns the directory of this user's files, and makes it if need be.
func Private() (string, error) {
	dir := filepath.Join("/dev/shm", "stint-"+strconv.Itoa(os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return "", &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	return dir, guard(dir, &st, unix.S_IFDIR)
}

// guard refuses what is of another kind, or open to other users.
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

// Open maps the file at path, which it makes if it is not there. Whoever comes
// first makes it as long as it will ever be, so that a full disk is an error here
// and not a signal later. It waits while another process does that.
func Open(path string, layout Layout) (*Arena, error) {
	if err := layout.validate(); err != nil {
		return nil, err
	}
	for {
		a, err := open(path, layout)
		if !errors.Is(err, errReplaced) {
			return a, err
		}
	}
}

// errReplaced: somebody has deleted the file while it was opened.
var errReplaced = errors.New("arena: the file was replaced")

func open(path string, layout Layout) (_ *Arena, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	a := &Arena{file: file, fd: int(file.Fd())}
	defer func() {
		if err != nil {
			_ = file.Close()
		}
	}()
	var st unix.Stat_t
	if err := unix.Fstat(a.fd, &st); err != nil {
		return nil, &os.PathError{Op: "fstat", Path: path, Err: err}
	}
	if err := guard(path, &st, unix.S_IFREG); err != nil {
		return nil, err
	}
	a.id = [2]uint64{uint64(st.Dev), st.Ino} //nolint:unconvert // of another size elsewhere
	if err := a.make(path, layout); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return a, nil
}

// make sees to it that the file is ready, and maps it. The lock is for those who
// come while it is made.
func (a *Arena) make(path string, layout Layout) error {
	if err := a.flock(unix.F_OFD_SETLKW, unix.F_WRLCK, lockMaking); err != nil {
		return err
	}
	defer a.Unlock(lockMaking)
	now, err := os.Stat(path)
	if err != nil || !a.is(now) {
		return errReplaced
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	var header [headerWords]uint64
	if _, err := unix.Pread(a.fd, bytesOf(header[:]), 0); err != nil {
		return os.NewSyscallError("pread", err)
	}
	ready := header[headMagic] == magic && [2]uint64(header[headBoot:]) == boot
	if ready {
		if err := fits(header[:], layout); err != nil {
			return err
		}
		if now.Size() < size(layout) {
			return fmt.Errorf("%w: its file was cut off at %d bytes", ErrMismatch, now.Size())
		}
	} else if err := a.allocate(layout); err != nil {
		return err
	}
	if err := a.mmap(layout); err != nil {
		return err
	}
	if !ready {
		a.initialize(layout, boot)
	}
	return nil
}

func (a *Arena) is(info os.FileInfo) bool {
	mine, err := a.file.Stat()
	return err == nil && os.SameFile(mine, info)
}

func size(layout Layout) int64 { return int64(headerWords+layout.Words) * 8 }

// allocate makes the file as long as it has to be, and all zeros: what is in it
// is of a process that died making it, or was made before the machine was last
// started.
func (a *Arena) allocate(layout Layout) error {
	if err := unix.Ftruncate(a.fd, 0); err != nil {
		return os.NewSyscallError("ftruncate", err)
	}
	if err := unix.Fallocate(a.fd, 0, 0, size(layout)); err != nil {
		_ = unix.Ftruncate(a.fd, 0) // gives back what there was room for
		return os.NewSyscallError("fallocate", err)
	}
	return nil
}

func (a *Arena) mmap(layout Layout) error {
	mem, err := unix.Mmap(a.fd, 0, int(size(layout)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	a.mem = unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), len(mem)/8)
	return nil
}

func (a *Arena) initialize(layout Layout, boot [2]uint64) {
	a.mem[headVersion] = Version
	a.mem[headWords] = uint64(layout.Words)
	copy(a.mem[headBoot:], boot[:])
	a.mem[headGeometry] = uint64(len(layout.Geometry))
	copy(a.mem[headGeometry+1:], layout.Geometry)
	atomic.StoreUint64(&a.mem[headMagic], magic)
}

// bootID names this run of the machine.
func bootID() (id [2]uint64, err error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return id, err
	}
	digits := strings.ReplaceAll(strings.TrimSpace(string(text)), "-", "")
	if len(digits) != 32 {
		return id, fmt.Errorf("arena: boot id %q", text)
	}
	for i := range id {
		if id[i], err = strconv.ParseUint(digits[i*16:][:16], 16, 64); err != nil {
			return id, err
		}
	}
	return id, nil
}

func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
}

// Words returns the memory, which begins on a page. It stays mapped for as long
// as the process lives: a goroutine that is late must not fault.
func (a *Arena) Words() []uint64 { return a.mem[headerWords:] }

// Identity tells files apart: what is in the same file has the same one.
func (a *Arena) Identity() [2]uint64 { return a.id }

// Close closes the file. Locks have to be given back before: the mapping keeps
// the open file, and so them, alive.
func (a *Arena) Close() error { return a.file.Close() }
