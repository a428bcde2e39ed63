package watcher

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The table is an array of 32-bit numbers in the machine's byte order: the
// magic number, the process that fills the table, and a cell for each slot: 0,
// the number of the process group that runs there, or less than 0 that of a job
// that is being started.
// Both processes run the same file, so whoever changes the layout changes both
// ends; the magic number is a new one then, for whoever starts the process
// by hand with a file of his own.
const (
	magic    = 0x53744a31
	atMagic  = 0
	atPid    = 1
	atCells  = 2
	maxSlots = 1 << 14 // above the 10,000 threads that the runtime allows
	size     = (atCells + maxSlots) * 4
)

// A cell is nothing but its number.
const _ = -(unsafe.Sizeof(atomic.Int32{}) ^ 4)

// newTable makes the table in memory that has a descriptor.
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

// openTable maps the table that another process has made.
func openTable(fd int) ([]atomic.Int32, error) {
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil || stat.Size != size {
		return nil, errTable // reading behind a file's end would be a fault
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

// numbers is mem as the numbers that it consists of.
func numbers(mem []byte) []atomic.Int32 {
	return unsafe.Slice((*atomic.Int32)(unsafe.Pointer(unsafe.SliceData(mem))), len(mem)/4)
}
