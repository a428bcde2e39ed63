package arena

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mappings are the files that this process has mapped, by identity, each once: opening a
// file again returns the same memory. They stay until the process ends, since a goroutine
// that is late must not fault. A mapping also keeps the file's inode number from being
// used for another file, except where numbers wrap around, as the 32-bit ones of a tmpfs
// may.
//
// A mapping is made from an open file of its own, which never has locks. The kernel
// keeps that open file, and its locks, for as long as the mapping exists: if it were the
// one of an arena, [File.Close] would not release the arena's locks.
type mappings struct {
	mu  sync.Mutex
	all map[Identity][]uint64
}

var mapped mappings //nolint:gochecknoglobals // a process has one address space

// find returns the memory of a file that is ready, and maps the file if necessary. The
// caller must hold the lock of making.
func (m *mappings) find(f *File, layout Layout) ([]uint64, error) {
	m.mu.Lock()
	mem := m.all[f.Identity]
	m.mu.Unlock()
	// Another process may have made the file anew in place, and longer.
	if n := headerWords + layout.Words; len(mem) >= n && shows(mem, f) {
		return mem[:n:n], nil
	}
	return m.add(f, layout)
}

// shows reports whether a mapping is of this file.
func shows(mem []uint64, f *File) bool {
	mark := rand.Uint64()
	_, err := f.file.WriteAt(binary.NativeEndian.AppendUint64(nil, mark), headMark*8)
	return err == nil && atomic.LoadUint64(&mem[headMark]) == mark
}

// add maps a file, for all arenas of it from now on. The caller must hold the lock of
// making.
func (m *mappings) add(f *File, layout Layout) ([]uint64, error) {
	mem, err := mmap(f, sizeOf(layout.Words))
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.all == nil {
		m.all = make(map[Identity][]uint64)
	}
	m.all[f.Identity] = mem
	return mem, nil
}

// mmap maps a file by another open file, without locks.
func mmap(f *File, size int64) ([]uint64, error) {
	lockless, err := openFile(f.path, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) || err == nil && lockless.Identity != f.Identity {
		err = errReplaced
	}
	if lockless != nil {
		defer lockless.Close() //nolint:errcheck // it was not written
	}
	if err != nil {
		return nil, err
	}
	var mem []byte
	err = lockless.control(func(fd int) (err error) {
		mem, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), len(mem)/8), nil
}

func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
}
