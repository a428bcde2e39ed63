package clock

import (
	"syscall"
	"time"
	"unsafe"
)

// suspended returns how long the machine has been suspended since it was started, during which the
// monotonic clock has stood still: CLOCK_BOOTTIME less CLOCK_MONOTONIC, see clock_gettime(2). It is exact
// to the time between two system calls.
func suspended() time.Duration {
	const monotonic, boot = 1, 7
	return gettime(boot) - gettime(monotonic)
}

// gettime returns the time of a clock of the kernel; 0 if there is no such clock.
func gettime(id uintptr) time.Duration {
	var at syscall.Timespec
	_, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&at)), 0)
	if failed != 0 {
		return 0
	}
	return time.Duration(at.Nano())
}
