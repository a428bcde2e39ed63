package watcher

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The table is an array of 32-bit numbers in the machine's byte order: the magic number,
// the PID of the process that fills the table, and a cell for each slot: 0, the ID of the
// process group that runs there, or, negated, the number of a job that is being started.
//
// Both processes run the same file, so a change of the layout applies to both
// ends. It must also change the magic number, for processes that are started
// by hand with a file of another version.
const (
	magic    = 0x53744a31
	atMagic  = 0
	atPid    = 1
	atCells  = 2
	maxSlots = 1 << 14 // more than the 10,000 threads that the runtime allows
	size     = (atCells + maxSlots) * 4
)

// A cell must have no more than its number.
const _ = -(unsafe.Sizeof(atomic.Int32{}) ^ 4)

// newTable makes the table in memory with a descriptor.
func newTable() (file *os.File, mem []byte, err error) {
	fd, err := unix.MemfdCreate("stint jobs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, os.NewSyscallError("memfd_create", err)
	}
	file = os.NewFile(uintptr(fd), "jobs")
	if err = file.Truncate(size); err == nil {
		mem, err = mapTable(fd)
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	table := numbers(mem)
	table[atMagic].Store(magic)
	table[atPid].Store(int32(os.Getpid()))
	return file, mem, nil
}

func mapTable(fd int) ([]byte, error) {
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	return mem, os.NewSyscallError("mmap", err)
}

var errTable = errors.New("no table of jobs: stint starts this process by itself")

// openTable maps the table that stint has made.
func openTable(fd int) ([]atomic.Int32, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Size != size {
		return nil, errTable // reading behind the end of a file would be a fault
	}
	mem, err := mapTable(fd)
	if err != nil {
		return nil, fmt.Errorf("table of jobs: %w", err)
	}
	if table := numbers(mem); table[atMagic].Load() == magic {
		return table, nil
	}
	return nil, errTable
}

// numbers returns mem as 32-bit numbers.
func numbers(mem []byte) []atomic.Int32 {
	return unsafe.Slice((*atomic.Int32)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/4)
}
