package run

import (
	"sync"
	"time"
)

// backoff holds the jobs that wait for their next attempt. They hold no slot,
// and a timer is all that each costs: a million of them may wait while a server
// is down. The zero value is ready for use, from any goroutine.
type backoff struct {
	mu     sync.Mutex
	closed bool
	timers map[*job]*time.Timer
}

// add calls next with j after a delay. Once the backoff is closed it answers
// false.
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

// remove reports whether j was still waiting.
func (b *backoff) remove(j *job) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.timers[j]
	delete(b.timers, j)
	return ok
}

// close calls drop with every job that waits, and takes no more.
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
