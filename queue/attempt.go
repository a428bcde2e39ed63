package queue

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Attempt is a task while this process works on it: what a [Handler] is given.
// Its methods may be called from any goroutine. To call a handler without a [Queue], as a
// test does, set Task alone: the methods then keep what they are given for
// [Attempt.Reported], and send nothing.
type Attempt struct {
	// Task is the task as it was when it was claimed. It is the handler's own.
	Task

	lease leaseOf
	until time.Time // when the lease ends by the clock of this process; guarded by the session's mutex
	slow  *slowdown // of the session; nil if there is none
	round uint64    // of slow, when the attempt began

	mu         sync.Mutex
	handling   *stoppable // the handler's context; nil before it is called
	ended      error      // why it is not to be called
	progress   Progress
	checkpoint []byte // to be sent
	saved      int    // checkpoints so far
	result     []byte
}

// leaseOf names a lease: tokens are a task's own.
type leaseOf struct {
	id    ID
	token Token
}

// Report sets the progress of the task. It is cheap: the next heartbeat sends the progress.
func (a *Attempt) Report(p Progress) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.progress = p
}

// Started ends the slowdown that a [Shortage] of another attempt has begun: this one
// has what it needs of this process. A handler that may return a Shortage calls it as
// soon as it cannot do so any more.
func (a *Attempt) Started() {
	if a.slow != nil {
		a.slow.end(a.round)
	}
}

// Save keeps a copy of a checkpoint, which the next attempt finds in its Task. The next
// heartbeat sends it, or the outcome.
func (a *Attempt) Save(checkpoint []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checkpoint = append([]byte{}, checkpoint...)
	a.saved++
}

// Return keeps a value as the result of the task, in JSON, if it succeeds;
// [Result] reads it.
func (a *Attempt) Return(value any) error {
	result, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("result of task %s: %w", a.ID, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.result = result
	return nil
}

// Reported is what a handler has reported so far.
type Reported struct {
	Progress   Progress
	Checkpoint []byte // the last one saved; nil if the store has it, or there is none
	Saved      int    // checkpoints so far
	Result     []byte // in JSON; nil if there is none
}

// Reported returns what the handler has reported so far. The slices must not be changed.
func (a *Attempt) Reported() Reported {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Reported{a.progress, a.checkpoint, a.saved, a.result}
}

// heartbeat returns the report of the task to send, and how many checkpoints it covers.
// The checkpoint is kept until its heartbeat is acknowledged: the outcome may overtake it.
func (a *Attempt) heartbeat(lease time.Duration) (b Heartbeat, saved int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b = Heartbeat{ID: a.lease.id, Token: a.lease.token, Lease: lease, Progress: a.progress, Checkpoint: a.checkpoint}
	return b, a.saved
}

// acknowledged drops the checkpoint if the store has it: if no other was saved since.
func (a *Attempt) acknowledged(saved int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.saved == saved {
		a.checkpoint = nil
	}
}

// starts reports whether the handler is to be called, with that context: not if the
// task was ended since it was claimed.
func (a *Attempt) starts(handling *stoppable) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handling = handling
	return a.ended == nil
}

// end ends the handler, or has it not be called.
func (a *Attempt) end(cause error) {
	a.mu.Lock()
	handling := a.handling
	if a.ended == nil {
		a.ended = cause
	}
	a.mu.Unlock()
	if handling != nil {
		handling.cancel(cause)
	}
}

// ordered ends the handler's context if the answer to a heartbeat demands it, and reports
// whether it does.
func (a *Attempt) ordered(stop StopReason) (ends bool) {
	switch stop {
	case StopPause:
		a.end(ErrPaused)
	case StopCancel:
		a.end(ErrCancelled)
	case StopLost:
		a.end(ErrStale)
	default:
		return false
	}
	return true
}
