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
// one of an arena, [Arena.Close] would not release the arena's locks.
var mappings struct { //nolint:gochecknoglobals // a process has one address space
	mu  sync.Mutex
	all map[[2]uint64][]uint64
}

// unclosed are the arenas that are open. What their locks protect may be in use longer
// than the arenas are referenced, as a slot that is held for as long as the process runs:
// so the garbage collector must not close their files.
var unclosed sync.Map //nolint:gochecknoglobals // as above

// mapAgain maps a file that is ready, or finds its mapping. The caller must hold the lock
// of making.
func (a *Arena) mapAgain(layout Layout) error {
	mappings.mu.Lock()
	mem := mappings.all[a.id]
	mappings.mu.Unlock()
	// Another process may have made the file anew in place, and longer.
	if n := headerWords + layout.Words; len(mem) >= n && a.shows(mem) {
		a.mem = mem[:n:n]
		return nil
	}
	return a.mmap(layout)
}

// shows reports whether a mapping is of this file.
func (a *Arena) shows(mem []uint64) bool {
	mark := rand.Uint64()
	_, err := a.file.WriteAt(binary.NativeEndian.AppendUint64(nil, mark), headMark*8)
	return err == nil && atomic.LoadUint64(&mem[headMark]) == mark
}

// mmap maps the file, for all arenas of it from now on. The caller must hold the lock of
// making.
func (a *Arena) mmap(layout Layout) error {
	lockless, err := open(a.path, os.O_RDWR)
	if errors.Is(err, os.ErrNotExist) || err == nil && lockless.id != a.id {
		err = errReplaced
	}
	if lockless != nil {
		defer lockless.Close() //nolint:errcheck // it was not written
	}
	if err != nil {
		return err
	}
	var mem []byte
	err = lockless.control(func(fd int) (err error) {
		mem, err = unix.Mmap(fd, 0, int(sizeOf(layout.Words)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		return err
	})
	if err != nil {
		return os.NewSyscallError("mmap", err)
	}
	a.mem = unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), len(mem)/8)
	mappings.mu.Lock()
	defer mappings.mu.Unlock()
	if mappings.all == nil {
		mappings.all = make(map[[2]uint64][]uint64)
	}
	mappings.all[a.id] = a.mem
	return nil
}

func bytesOf(words []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
}

// Words returns the memory, which begins on a page. It is the same for all arenas of the
// file in this process, and stays mapped until the process ends, since a goroutine that
// is late must not fault.
func (a *Arena) Words() []uint64 { return a.mem[headerWords:] }
