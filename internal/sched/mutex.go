package sched

import "sync"

// spinMutex is a mutex for sections of a few dozen instructions. A goroutine that finds
// it taken spins for about as long as a hundred sections take (with shared slots, a few), tries
// again, and parks in the end: sync.Mutex parks at once when other goroutines are ready to run,
// and to park and be woken takes far longer than a section. Each hand-over moves a dozen cache
// lines to another core. An owner that continues meanwhile, for several jobs, pays that once.
type spinMutex struct {
	spins int // iterations before the second try, and twice as many before the third; immutable
	mu    sync.Mutex
}

// Iterations of an empty loop between tries, about a third of a nanosecond each. With shared
// slots other processes need the processors, so there are fewer.
const (
	spinAlone  = 16384
	spinShared = 512
)

func (m *spinMutex) Lock() {
	if m.mu.TryLock() || spin(m.spins) && m.mu.TryLock() || spin(2*m.spins) && m.mu.TryLock() {
		return
	}
	m.mu.Lock()
}

func (m *spinMutex) TryLock() bool { return m.mu.TryLock() }

func (m *spinMutex) Unlock() { m.mu.Unlock() }

// spin passes the time without accessing memory, and returns true.
//
//go:noinline
func spin(turns int) bool {
	sum := 0
	for i := range turns {
		sum ^= i
	}
	return sum >= 0
}
