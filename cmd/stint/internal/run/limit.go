package run

import "sync"

// limit is the number of jobs that may run at once, from 1 to most. It changes during the
// run, and is safe for concurrent use.
type limit struct {
	most   int       // the limit of the system
	resize func(int) // applies the limit to the scheduler

	mu sync.Mutex
	n  int // guarded by mu
}

// set sets the limit to n.
func (l *limit) set(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setLocked(n)
}

// change adds by to the limit.
func (l *limit) change(by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.setLocked(l.n + by)
}

func (l *limit) setLocked(n int) {
	l.n = min(max(n, 1), l.most)
	l.resize(l.n)
}
