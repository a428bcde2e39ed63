package shared

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/stintgo/stint"
)

// futexLimit is one slot in a word of a file: the least that it takes to wake another
// process. A process that dies keeps the slot. With a goroutine, one sleeps for the
// process and wakes the caller, as has to be where several callers wait.
type futexLimit struct {
	word  *uint32
	woken chan struct{} // nil: the caller sleeps itself
}

func openFutex(dir string, _, _ int) (limit, error) { return mapFutex(dir) }

func openFutexGoroutine(dir string, _, _ int) (limit, error) {
	f, err := mapFutex(dir)
	f.woken = make(chan struct{})
	return f, err
}

func mapFutex(dir string) (f futexLimit, err error) {
	file, err := os.OpenFile(filepath.Join(dir, "futex"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return f, err
	}
	defer func() { _ = file.Close() }()
	size := os.Getpagesize()
	if err := file.Truncate(int64(size)); err != nil {
		return f, err
	}
	mem, err := syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return f, err
	}
	f.word = (*uint32)(unsafe.Pointer(&mem[0]))
	return f, nil
}

func (f futexLimit) caller() (caller, error) { return f, nil }

func (f futexLimit) acquire(stint.Priority) error {
	if atomic.CompareAndSwapUint32(f.word, 0, 1) {
		return nil
	}
	if f.woken == nil {
		f.sleep()
		return nil
	}
	go func() {
		f.sleep()
		f.woken <- struct{}{}
		runtime.Gosched() // the caller needs the processor
	}()
	<-f.woken
	return nil
}

// sleep sleeps until it has the slot.
func (f futexLimit) sleep() {
	const wait = 0
	for !atomic.CompareAndSwapUint32(f.word, 0, 1) {
		_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(f.word)), wait, 1, 0, 0, 0)
	}
}

func (f futexLimit) release() error {
	const wake, one = 1, 1
	atomic.StoreUint32(f.word, 0)
	_, _, _ = syscall.RawSyscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(f.word)), wake, one, 0, 0, 0)
	return nil
}
