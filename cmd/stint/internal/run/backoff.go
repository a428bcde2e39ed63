package run

import (
	"sync"
	"time"
)

// backoff holds the jobs that wait for their next attempt. A waiting job holds no slot
// and costs only a timer, so a million jobs can wait while a server is down. The zero
// value is ready for use, and safe for concurrent use.
type backoff struct {
	mu     sync.Mutex
	closed bool
	timers map[*job]*time.Timer
}

// add calls next with j after a delay. It returns false once the backoff is closed.
func (b *backoff) add(j *job, delay time.Duration, next func(*job)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	if b.timers == nil {
		b.timers = map[*job]*time.Timer{}
	}
	b.timers[j] = time.AfterFunc(delay, func() {
		if b.remove(j) {
			next(j)
		}
	})
	return true
}

// remove removes j, and reports whether it was still waiting.
func (b *backoff) remove(j *job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.timers[j]
	delete(b.timers, j)
	return ok
}

// close calls drop with every job that waits. Afterwards add refuses jobs.
func (b *backoff) close(drop func(*job)) {
	b.mu.Lock()
	waiting := b.timers
	b.timers, b.closed = nil, true
	b.mu.Unlock()
	for j, timer := range waiting {
		timer.Stop()
		drop(j)
	}
}
