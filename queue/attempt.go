package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// Attempt is one attempt of a task in this process; a [Handler] receives it. Its methods
// may be called from any goroutine. A test that calls a handler without a [Queue] sets
// Task alone: then the methods send nothing, and [Attempt.Reported] returns what they
// were given.
type Attempt struct {
	// Task is the task as it was when it was claimed. The handler may change it.
	Task

	lease        leaseOf
	until        time.Time // when the lease ends by the clock of this process; guarded by the mutex of leases
	slow         *slowdown // of the session; nil if there is none
	round        uint64    // of slow, when the attempt began
	heartbeatNow func()    // triggers a heartbeat; nil without a session
	queue        *Queue    // nil without a session
	settler      *settler  // of the queue from which the task was claimed; nil without a session

	mu         sync.Mutex
	handling   *stoppable // the handler's context; nil before it is called
	ended      error      // why the handler must not be called
	progress   Progress
	checkpoint []byte        // the checkpoint to send
	saved      int           // the number of checkpoints so far
	sent       int           // the number of them when the outcome was made
	stored     int           // the number of them that the store has, or has a later one of
	lost       error         // why the store takes no more of them: ErrStale, or ErrTooLarge
	more       chan struct{} // closed when stored grows or lost is set; nil if nothing waits for that
	result     []byte
	inTx       bool // Outcome has been called
	returned   bool // the handler has returned
}

// leaseOf identifies a lease. Tokens are unique within a task only.
type leaseOf struct {
	id    ID
	token Token
}

// Report sets the progress of the task. It is cheap: the next heartbeat sends the progress.
func (a *Attempt) Report(p Progress) {
	p.Note = cut(p.Note)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.progress = p
}

// Started ends the slowdown of claims that a [Shortage] of another attempt has begun,
// because this attempt has the resources that it needs. A handler that may return a
// Shortage calls Started as soon as it cannot do so any more.
func (a *Attempt) Started() {
	if a.slow != nil {
		a.slow.end(a.round)
	}
}

// Save keeps a copy of a checkpoint. The next heartbeat or the outcome sends it, and the
// next attempt finds it in its Task. If the store refuses it as too large, 1 MiB being the usual
// limit, the handler's context ends with [ErrTooLarge].
func (a *Attempt) Save(checkpoint []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checkpoint = append([]byte{}, checkpoint...)
	a.saved++
}

// Sync blocks until the store has the checkpoint of the last Save, or a later one, so that the
// next attempt finds it even if this process is killed. It triggers a heartbeat, which costs
// about as much as a submission. While the store cannot be reached or is full, Sync waits. It
// returns the cause of ctx if that ends first. Without a [Queue] it returns nil at once. It also
// works after the task was ordered to pause or cancel, with a context that is not the handler's.
// Errors: [ErrTooLarge] and [ErrStale], after which the store takes no checkpoint of the attempt.
func (a *Attempt) Sync(ctx context.Context) error {
	a.mu.Lock()
	saved := a.saved
	a.mu.Unlock()
	for request := a.heartbeatNow; ; request = nil {
		more, err := a.unstored(saved)
		switch {
		case err != nil:
			return fmt.Errorf("sync the checkpoint of task %s: %w", a.ID, err)
		case more == nil:
			return nil
		}
		if request != nil { // once: heartbeats that the store cannot take are repeated anyway
			request()
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("sync the checkpoint of task %s: %w", a.ID, context.Cause(ctx))
		}
	}
}

// Relay makes [Attempt.Sync] wait although the attempt has no [Queue]. It is for a package that
// runs a handler in another process and reports from there, such as isolate. A Sync that waits
// calls request, which must not block. The caller calls stored when the store has the first n
// checkpoints, or with the reason why it takes no more.
func (a *Attempt) Relay(request func()) (stored func(n int, why error)) {
	a.heartbeatNow = request
	return func(n int, why error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.stored = max(a.stored, n); why != nil {
			a.lost = why
		}
		a.wake()
	}
}

// unstored returns a channel that is closed when the store has a further checkpoint, or takes no
// more; nil if it has the given number of them, or if there is no store.
func (a *Attempt) unstored(saved int) (<-chan struct{}, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.heartbeatNow == nil, a.stored >= saved:
		return nil, nil
	case a.lost != nil:
		return nil, a.lost
	case a.more == nil:
		a.more = make(chan struct{})
	}
	return a.more, nil
}

// Return sets the result of the task, in JSON, which counts if the attempt succeeds;
// [Result] reads it. The task is dead if the store refuses the result as too large: 1 MiB is
// the usual limit.
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

// Outcome returns the outcome that the attempt has if its handler returns err now, with what
// the handler has reported. It is for a store that settles the attempt in a transaction of the
// handler, such as pgstore.SettleTx of package queue/pgstore. What the handler returns after
// a call of Outcome counts only if no such transaction has committed. Without a [Queue], and
// after the handler has returned, there is no outcome: it has no token.
func (a *Attempt) Outcome(err error) Outcome {
	a.mu.Lock()
	ctx := a.handling
	if a.queue == nil || ctx == nil || a.returned {
		a.mu.Unlock()
		return Outcome{ID: a.ID}
	}
	a.inTx = true
	a.mu.Unlock()
	o := a.outcomeOf(ctx, err)
	if !o.RunAt.IsZero() {
		// With a monotonic reading, so that the store has the delay, whatever the system clock is set to. The clock
		// of the queue has none.
		o.RunAt = clock.Now().Add(o.RunAt.Sub(a.queue.clock.Now()))
	}
	return o
}

// Reported is what a handler has reported so far.
type Reported struct {
	Progress   Progress
	Checkpoint []byte // the last checkpoint; nil if the store has it, or there is none
	Saved      int    // the number of checkpoints so far
	Result     []byte // in JSON; nil if there is none
}

// Reported returns what the handler has reported so far. The slices must not be changed.
func (a *Attempt) Reported() Reported {
	a.mu.Lock()
	defer a.mu.Unlock()
	return Reported{a.progress, a.checkpoint, a.saved, a.result}
}

// heartbeat returns the report to send, and the number of checkpoints that it covers. The
// checkpoint is kept until its heartbeat is acknowledged, because the outcome may
// overtake it.
func (a *Attempt) heartbeat(lease time.Duration) (b Heartbeat, saved int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b = Heartbeat{ID: a.lease.id, Token: a.lease.token, Lease: lease, Progress: a.progress, Checkpoint: a.checkpoint}
	return b, a.saved
}

// acknowledged records that the store has a checkpoint, and drops the checkpoint if no later
// one was saved.
func (a *Attempt) acknowledged(saved int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.saved == saved {
		a.checkpoint = nil
	}
	if saved <= a.stored {
		return
	}
	a.stored = saved
	a.wake()
}

// settled records that the store has answered the outcome, with err: it has the checkpoints of the
// outcome if err is nil, and takes no more.
func (a *Attempt) settled(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil {
		a.stored = max(a.stored, a.sent)
	}
	if a.lost == nil {
		a.lost = ErrStale
		if errors.Is(err, ErrTooLarge) {
			a.lost = err
		}
	}
	a.wake()
}

// wake ends the waits of Sync for a change of stored or lost. The caller holds the lock.
func (a *Attempt) wake() {
	if a.more != nil {
		close(a.more)
		a.more = nil
	}
}

// starts sets the handler's context and reports whether the handler may be called. It may
// not if the task was ended after the claim.
func (a *Attempt) starts(handling *stoppable) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.handling = handling
	return a.ended == nil
}

// returns records that the handler has returned.
func (a *Attempt) returns() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.returned = true
}

func (a *Attempt) hasReturned() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.returned
}

// end ends the handler's context, or prevents the call of the handler.
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
	if errors.Is(cause, ErrPaused) || errors.Is(cause, ErrCancelled) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lost = cause // after the end of the context: a handler that Sync returns to reads it
	a.wake()
}

// ordered ends the handler's context if the answer to a heartbeat demands it.
func (a *Attempt) ordered(stop StopReason) {
	switch stop {
	case StopPause:
		a.end(ErrPaused)
	case StopCancel:
		a.end(ErrCancelled)
	case StopLost:
		a.end(ErrStale)
	}
}
