package stint

import (
	"time"
	"unsafe"
	"weak"
)

// Collected returns a function that reports whether the garbage collector has taken
// what the copies of l share.
func (l Limiter) Collected() func() bool {
	p := weak.Make(l.c)
	return func() bool { return p.Value() == nil }
}

// SetBack makes l look as if the system's clock had been set back by whole seconds since l was
// made: its start has a later time of day, and the same monotonic reading.
func (l Limiter) SetBack(d time.Duration) {
	const second = 1 << 30 // of the first word of a time.Time that has a monotonic reading
	*(*uint64)(unsafe.Pointer(&l.c.start)) += uint64(d/time.Second) * second
}
