package run

import (
	"sync"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/proc"
)

// timeout ends a process group that takes too long: TERM first, and KILL for
// what is left of it a while later. A nil timeout ends nothing.
type timeout struct {
	process   *proc.Process
	killAfter time.Duration
	killed    chan struct{} // closed when the KILL signal has been sent

	mu      sync.Mutex
	timer   *time.Timer // guarded by mu
	expired bool        // guarded by mu
}

// startTimeout starts the clock for p. No limit needs no clock.
func startTimeout(p *proc.Process, limit, killAfter time.Duration) *timeout {
	if limit <= 0 {
		return nil
	}
	t := &timeout{process: p, killAfter: killAfter, killed: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(limit, t.expire)
	return t
}

// expire is called when the time is up. A job that has ended in time, which
// nobody has noticed yet, has not timed out.
func (t *timeout) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.process.Ended() {
		return
	}
	t.expired = true
	t.process.Signal(syscall.SIGTERM)
	t.process.Signal(syscall.SIGCONT) // one that is stopped would not see it
	t.timer = time.AfterFunc(t.killAfter, func() {
		t.process.Signal(syscall.SIGKILL)
		close(t.killed)
	})
}

// finish is called when the leader has ended, and is not reaped yet. It reports
// whether the time was up. If it was, it blocks until the rest of the group has
// ended too: that got the same signal, and has the same time for what it still
// has to do.
func (t *timeout) finish() (expired bool) {
	if t == nil || !t.isUp() {
		return false
	}
	// Nearly always the whole group has ended with its leader, or does so in no
	// time. Looking is too costly to do it often for those that don't.
	for pause := time.Millisecond; t.process.Survived(); pause = min(2*pause, 200*time.Millisecond) {
		select {
		case <-t.killed:
			return true
		case <-time.After(pause):
		}
	}
	t.stop()
	return true
}

// isUp reports whether the time is up, and stops the clock if it is not.
func (t *timeout) isUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.expired {
		t.timer.Stop()
	}
	return t.expired
}

// stop stops the clock for the KILL signal.
func (t *timeout) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer.Stop()
}
