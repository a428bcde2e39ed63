package queue

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// dispatcher claims the tasks of one queue for its runners.
//
// One runner at a time seeks: it waits for a slot, takes a claimed task or claims some,
// and lets the next runner seek while it works. So the queue waits for slots in its place
// among all other work, holds no slot while it has nothing to do, and claims at the last
// moment. A runner whose task was short seeks again itself, so a backlog of small tasks
// needs no new goroutine and no context switch for each task.
//
// A store that does not answer would hold the slot of each claim, and so keep the tasks of
// other queues from it. So after a claim that failed, claims are made without a slot, see
// probe, until one succeeds.
type dispatcher struct {
	s     *session
	claim Claim
	more  chan struct{} // signals that a runner has stopped seeking; holds one signal
	over  func() error  // returns an error when no more tasks are to start

	mu      sync.Mutex
	stopped bool
	wanted  bool      // there may be more tasks than the last claim has seen
	failed  bool      // the last claim failed; written by the seeking runner, which may read it without mu
	again   time.Time // when a rate allows more; zero if unknown
	seeking *runner   // the runner that waits for a slot or claims
	parked  []*runner // idle runners, the last one first
	claimed []*Attempt
	since   time.Time // when the tasks of claimed were claimed
	size    claimSize
	cut     context.CancelFunc // ends the claim in progress
}

const (
	// patience is how long a claimed task may wait for a slot before it is released, for
	// the case that running tasks suddenly take longer than before.
	patience = 100 * time.Millisecond
	// atLeast is how long to wait for an event that is already due: the clock of a store
	// on another host may be behind this one, and asking it again at once would keep
	// both busy until it has caught up.
	atLeast = time.Millisecond
	// lastClaim is how long a claim may still take when no more tasks are to start.
	lastClaim = 2 * time.Second
	// soonest is the duration of a timer for an event that is already due. A timer of 0
	// fires in the goroutine that looks at it, and with the race detector two goroutines
	// that do so at once in a bubble of testing/synctest crash the program
	// (https://go.dev/issue/78156, open as of Go 1.26).
	soonest = time.Nanosecond
)

// dispatch claims tasks of a queue until ctx ends.
func (s *session) dispatch(ctx context.Context, name string) {
	d := &dispatcher{s: s, more: make(chan struct{}, 1), over: ctx.Err, wanted: true}
	d.claim = Claim{Worker: s.worker.Name, Queue: name, Kinds: s.worker.Kinds[name], Lease: s.q.cfg.Lease}
	ready, stop := s.q.store.Listen(name)
	defer stop()
	poll := s.q.clock.Now().Add(s.q.cfg.Poll)
	trim := poll // has a timer of its own: a queue that is always busy may otherwise never be polled
	wake := time.NewTimer(s.q.cfg.Poll)
	defer wake.Stop()
	for ctx.Err() == nil {
		slow := s.slow.change() // before the look at the queue
		d.kick()
		now := s.q.clock.Now()
		if !now.Before(trim) {
			d.trim()
			trim = now.Add(s.q.cfg.Poll)
		}
		wake.Reset(max(d.next(poll).Sub(now), soonest))
		select {
		case <-d.more:
		case <-slow:
			d.release(d.overdue(s.q.clock.Now()))
		case <-ready:
			if d.lookUnlessFailed() {
				poll = s.q.clock.Now().Add(s.q.cfg.Poll)
			}
		case <-wake.C:
			now = s.q.clock.Now()
			d.release(d.overdue(now))
			if d.due(now, poll) {
				d.look()
				poll = now.Add(s.q.cfg.Poll)
			}
		case <-ctx.Done():
		}
	}
	d.release(d.stop())
}

// look makes the next runner claim, whatever the last claim found.
func (d *dispatcher) look() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wanted, d.again = true, time.Time{}
}

// lookUnlessFailed looks after a signal of the store, unless the last claim failed: its
// failure may be the reason of the signal.
func (d *dispatcher) lookUnlessFailed() bool {
	d.mu.Lock()
	failed := d.failed
	d.mu.Unlock()
	if !failed {
		d.look()
	}
	return !failed
}

// next returns when to look or to release tasks at the latest.
func (d *dispatcher) next(poll time.Time) time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.again.IsZero() && d.again.Before(poll) {
		poll = d.again
	}
	if stale := d.since.Add(patience); len(d.claimed) > 0 && stale.Before(poll) {
		poll = stale
	}
	if at := d.s.slow.until(d.s.q.clock.Now()); !at.IsZero() && at.Before(poll) {
		poll = at
	}
	return poll
}

// due reports whether it is time to look.
func (d *dispatcher) due(now, poll time.Time) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !now.Before(poll) || !d.again.IsZero() && !now.Before(d.again)
}

// overdue removes and returns claimed tasks that did not start in time, or must not start
// because this process lacks a resource.
func (d *dispatcher) overdue(now time.Time) (late []*Attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.claimed) == 0 || now.Before(d.since.Add(patience)) && d.s.slow.until(now).IsZero() {
		return nil
	}
	late, d.claimed = d.claimed, nil
	d.size.failed()
	return late
}

// release releases tasks that have not started. It does not wait for the settler, which may
// wait for the store: the dispatcher has to notice the end of ctx.
func (d *dispatcher) release(left []*Attempt) {
	if len(left) > 0 {
		d.s.working.Go(func() { d.s.release(left) })
	}
}

// trim ends half of the idle runners, so that few remain after a burst.
func (d *dispatcher) trim() {
	d.mu.Lock()
	defer d.mu.Unlock()
	half := len(d.parked) / 2
	for _, r := range d.parked[:half] {
		close(r.wake)
	}
	d.parked = slices.Delete(d.parked, 0, half)
}

// kick makes a runner seek, if there may be tasks and no runner seeks.
func (d *dispatcher) kick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seeking != nil || !d.hasWork() {
		return
	}
	if n := len(d.parked); n > 0 {
		r := d.parked[n-1]
		d.parked = d.parked[:n-1]
		d.seeking = r
		r.wake <- struct{}{}
		return
	}
	r := newRunner(d)
	d.seeking = r
	d.s.working.Go(r.run)
}

// hasWork reports whether a runner could find a task. The caller holds the lock.
func (d *dispatcher) hasWork() bool {
	return !d.stopped && d.over() == nil && (d.wanted || len(d.claimed) > 0) && d.s.slow.until(d.s.q.clock.Now()).IsZero()
}

// stop prevents further starts, and returns the claimed tasks that have not started. A
// runner that waits for a slot stops waiting.
func (d *dispatcher) stop() (left []*Attempt) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.cut != nil {
		time.AfterFunc(lastClaim, d.cut)
	}
	if r := d.seeking; r != nil && !r.onSlot {
		r.stop()
	}
	for _, r := range d.parked {
		close(r.wake)
	}
	d.parked = nil
	left, d.claimed = d.claimed, nil
	return left
}

// take returns a task for a runner that has its slot: a claimed one, or one that it
// claims now; nil if there is none. It ends the runner's turn to seek if there is a task.
// If there is none, resume ends the turn when the slot is free again, so that the next
// claim counts that slot.
func (d *dispatcher) take(r *runner) (a *Attempt) {
	d.mu.Lock()
	r.onSlot = true
	may := d.hasWork()
	if len(d.claimed) == 0 && may {
		d.refill()
	}
	if len(d.claimed) > 0 && may {
		a = d.claimed[0]
		if d.claimed = d.claimed[1:]; len(d.claimed) == 0 {
			d.size.started(d.s.q.clock.Now())
		}
	}
	if a != nil {
		d.seeking = nil
		signal(d.more)
	}
	d.mu.Unlock()
	return a
}

// probe claims a task without a slot if the last claim failed, and reports whether that
// is so. A task that it claims waits for a slot, like any prefetched task. The
// caller is the runner that seeks.
func (d *dispatcher) probe() bool {
	if !d.failed {
		return false
	}
	d.mu.Lock()
	if d.hasWork() {
		d.refill()
	}
	d.mu.Unlock()
	return true
}

// refill claims tasks, only one after a claim that failed. The caller holds the lock, which
// refill releases during the call of the store.
func (d *dispatcher) refill() {
	s := d.s
	asked := s.q.clock.Now()
	st := s.slots.Stats()
	c := d.claim
	c.Max = d.size.ask(asked, st.Limit-st.Running-st.Queued)
	slow := s.slow.slow.Load()
	if slow || d.failed {
		c.Max = 1
	}
	if slow && !s.slow.probe(asked) {
		return
	}
	d.wanted = false // a task that is submitted from now on may be too late for this claim
	ctx, cut := context.WithTimeout(s.base, s.q.cfg.Lease)
	defer cut()
	d.cut = cut
	d.mu.Unlock()
	got, err := s.q.store.Claim(ctx, asked, c)
	attempts := s.begin(c.Queue, got.Tasks, asked.Add(s.q.cfg.Lease))
	switch {
	case errors.Is(err, ErrClosed):
		s.halt(err)
	case err != nil:
		s.q.cfg.Logger.Error("claim tasks", slog.String("queue", c.Queue), slog.Any("error", err))
	}
	d.mu.Lock()
	d.cut = nil
	if d.failed = err != nil; d.failed {
		d.wanted = false
	}
	now := s.q.clock.Now()
	if slow && len(attempts) == 0 {
		s.slow.unused(now)
	}
	d.size.answered(now, len(attempts))
	d.claimed, d.since = attempts, now
	if len(attempts) == c.Max {
		d.wanted = true
	}
	if !got.Next.IsZero() {
		d.again = got.Next
		if !got.Next.After(now) {
			d.again = now.Add(atLeast)
		}
	}
	if d.stopped {
		d.claimed = nil
		d.mu.Unlock()
		s.release(attempts)
		d.mu.Lock()
	}
}

// ended counts a task that has ended. The runner calls it while it still has its slot, so
// that the next runner on the slot may claim at once.
func (d *dispatcher) ended() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.size.ended++
}

// resume makes a runner whose task has ended seek again, if there may be tasks and no
// other runner seeks.
func (d *dispatcher) resume(r *runner) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.seeking == r { // its claim has found nothing
		d.seeking = nil
		signal(d.more)
	}
	if d.seeking != nil || !d.hasWork() {
		return false
	}
	d.seeking, r.onSlot = r, false
	return true
}

// park keeps an idle runner, unless the dispatcher has stopped.
func (d *dispatcher) park(r *runner) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.stopped {
		r.onSlot = false
		d.parked = append(d.parked, r)
	}
	return !d.stopped
}

// noSlot ends the turn of a runner that did not get a slot. The next look tries again. A runner
// that had a slot has no turn to end: another one may be seeking.
func (d *dispatcher) noSlot(r *runner, err error) {
	d.mu.Lock()
	if d.seeking == r {
		d.seeking, d.wanted = nil, false
	}
	stopped := d.stopped
	d.mu.Unlock()
	if !stopped {
		d.s.q.cfg.Logger.Error("wait for a slot", slog.String("queue", d.claim.Queue), slog.Any("error", err))
	}
}
