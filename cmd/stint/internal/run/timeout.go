package run

import (
	"sync"
	"syscall"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/proc"
)

// timeout ends a process group that takes too long: TERM first, and KILL for
// what is left of it a while later. A nil timeout ends nothing.
type timeout struct {
	mu      sync.Mutex
	timer   *time.Timer // guarded by mu
	expired bool        // guarded by mu
}

// startTimeout starts the clock for p. No limit needs no clock.
func startTimeout(p *proc.Process, limit, killAfter time.Duration) *timeout {
	if limit <= 0 {
		return nil
	}
	t := &timeout{}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(limit, func() { t.expire(p, killAfter) })
	return t
}

func (t *timeout) expire(p *proc.Process, killAfter time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expired = true
	p.Signal(syscall.SIGTERM)
	p.Signal(syscall.SIGCONT) // one that is stopped would not see it
	t.timer = time.AfterFunc(killAfter, func() { p.Signal(syscall.SIGKILL) })
}

// stop stops the clock and reports whether the time was up.
func (t *timeout) stop() (expired bool) {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
	return t.expired
}
