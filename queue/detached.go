package queue

import (
	"errors"
	"time"
)

// Detached returns an attempt that no [Queue] makes, for what calls a handler
// itself: a test, or a process that does the work of another. What the handler
// reports goes nowhere; [Attempt.Reported] has it.
func Detached(t Task) *Attempt { return &Attempt{Task: t, lease: leaseOf{t.ID, t.Lease.Token}} }

// Reported is what a handler has reported of its work so far.
type Reported struct {
	Progress   Progress
	Checkpoint []byte // the last one saved; nil if the store has it, or there is none
	Saved      int    // checkpoints so far
	Result     []byte // in JSON; nil if there is none
}

// Reported returns what the handler has reported so far. The slices are not to be
// written to.
func (a *Attempt) Reported() Reported {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Reported{a.progress, a.checkpoint, a.saved, a.result}
}

// SnoozeDelay returns the delay that an error of [Snooze] asks for. It reports
// false if err is no such error, and wraps none.
func SnoozeDelay(err error) (time.Duration, bool) {
	again, ok := errors.AsType[snooze](err)
	return again.delay, ok
}
