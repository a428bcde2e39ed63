package arena

import (
	"encoding/binary"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The operations of a futex that processes share; see futex(2).
const (
	futexWait = 0
	futexWake = 1
)

// Sleep returns when the word is woken, when d is over, or at once if the low
// half of the word differs from that of seen. It may also return spuriously.
func Sleep(at *uint64, seen uint64, d time.Duration) {
	timeout := unix.NsecToTimespec(max(int64(d), 0))
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, low(at), futexWait, uintptr(uint32(seen)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
}

// Wake wakes all that sleep until the word changes.
func Wake(at *uint64) {
	const all = 1<<31 - 1
	_, _, _ = unix.RawSyscall6(unix.SYS_FUTEX, low(at), futexWake, all, 0, 0, 0)
}

// low returns the address of the half of a word that the futex compares.
func low(at *uint64) uintptr {
	half := uintptr(unsafe.Pointer(at))
	if binary.NativeEndian.Uint16([]byte{0, 1}) == 1 {
		half += 4
	}
	return half
}
