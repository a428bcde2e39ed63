package run

import (
	"sync"
	"syscall"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/proc"
)

// timeout ends a process group that takes too long: with SIGTERM, and later with SIGKILL
// for the processes that are left. The time between pause and resume does not count. A nil
// timeout ends nothing.
type timeout struct {
	process   *proc.Process
	killAfter time.Duration
	killed    chan struct{} // closed when SIGKILL has been sent

	mu      sync.Mutex
	timer   *time.Timer   // guarded by mu
	ends    time.Time     // when timer expires; guarded by mu
	left    time.Duration // of timer, while it is paused; 0: it is not. Guarded by mu
	expired bool          // guarded by mu
}

// startTimeout starts the timer for p. Without a limit it returns nil.
func startTimeout(p *proc.Process, limit, killAfter time.Duration) *timeout {
	if limit <= 0 {
		return nil
	}
	t := &timeout{process: p, killAfter: killAfter, killed: make(chan struct{})}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start(limit, t.expire)
	return t
}

// start starts the timer. The caller must hold mu.
func (t *timeout) start(d time.Duration, expire func()) {
	t.timer, t.ends = time.AfterFunc(d, expire), clock.Now().Add(d)
}

// expire is called when the timer expires. A job that has ended but was not waited for
// yet has not timed out.
func (t *timeout) expire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.process.Ended() {
		return
	}
	t.expired = true
	t.process.Signal(syscall.SIGTERM)
	t.process.Signal(syscall.SIGCONT) // a stopped process would not receive the signal
	t.start(t.killAfter, func() {
		t.process.Signal(syscall.SIGKILL)
		close(t.killed)
	})
}

// pause stops the timer until resume.
func (t *timeout) pause() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer.Stop() {
		t.left = max(t.ends.Sub(clock.Now()), 1)
	}
}

func (t *timeout) resume() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.left > 0 {
		t.timer.Reset(t.left)
		t.ends, t.left = clock.Now().Add(t.left), 0
	}
}

// finish is called when the leader has ended but is not reaped yet. It reports whether
// the timer has expired. If so, it blocks until the rest of the group has ended too:
// those processes got the same signal, and the same time to end.
func (t *timeout) finish() (expired bool) {
	if t == nil || !t.isUp() {
		return false
	}
	// Nearly always the whole group has ended with its leader, or ends right after it.
	// Checking often would be too costly for the others.
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

// isUp reports whether the timer has expired, and stops it if not.
func (t *timeout) isUp() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.expired {
		t.halt()
	}
	return t.expired
}

// stop stops the timer for SIGKILL.
func (t *timeout) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.halt()
}

// halt stops the timer for good. The caller must hold mu.
func (t *timeout) halt() {
	t.timer.Stop()
	t.left = 0
}
