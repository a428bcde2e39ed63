package queue

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
)

// dispatcher claims the tasks of one queue. One claim waits for a slot at a
// time: when it has one and finds a task, it has the next claim wait, and works
// on its task. So the queue waits among the others who want slots as one of
// them, in its place, and holds none while it has nothing to do.
type dispatcher struct {
	s       *session
	claim   Claim
	pending atomic.Pointer[turn] // the claim that waits, or is being made
	idle    chan struct{}        // a claim has ended that no other follows
	next    atomic.Int64         // when a rate allows more, in nanoseconds since 1970; 0: not known
}

// turn is one claim.
type turn struct {
	begun atomic.Bool // it has its slot, or has been given up
	stop  context.CancelFunc
}

// dispatch claims tasks of a queue until ctx ends.
func (s *session) dispatch(ctx context.Context, name string) {
	d := &dispatcher{s: s, idle: make(chan struct{}, 1)}
	d.claim = Claim{
		Worker: s.worker.Name, Queue: name, Kinds: s.worker.Kinds[name], Max: 1, Lease: s.q.cfg.Lease,
	}
	ready := s.q.store.Ready(name)
	poll := time.NewTimer(s.q.cfg.Poll)
	defer poll.Stop()
	for wanted := true; ; {
		if wanted {
			// If a claim is under way it may have come too early, and ends with idle.
			wanted = !d.start() //nolint:contextcheck // handlers outlive ctx
		}
		select {
		case <-ready:
			wanted = true
		case <-poll.C:
			wanted = true
			poll.Reset(s.q.cfg.Poll)
		case <-d.idle:
			poll.Reset(d.pause())
		case <-ctx.Done():
			d.abandon()
			return
		}
	}
}

// pause is how long to wait if nothing is signalled.
func (d *dispatcher) pause() time.Duration {
	poll := d.s.q.cfg.Poll
	at := d.next.Swap(0)
	if at == 0 {
		return poll
	}
	return min(max(time.Unix(0, at).Sub(d.s.q.clock.now()), 0), poll)
}

// start has a claim wait for a slot, and reports whether it did: not if there
// is one.
func (d *dispatcher) start() bool {
	ctx, stop := context.WithCancel(d.s.base)
	t := &turn{stop: stop}
	if !d.pending.CompareAndSwap(nil, t) {
		stop()
		return false
	}
	d.s.working.Go(func() {
		defer stop()
		_, err := stint.Run(ctx, d.s.slots, func(ctx context.Context) (struct{}, error) {
			if t.begun.CompareAndSwap(false, true) {
				d.work(ctx)
			}
			return struct{}{}, nil
		})
		if t.begun.CompareAndSwap(false, true) { // there is no slot to be had
			d.s.q.cfg.Logger.Error("wait for a slot", slog.String("queue", d.claim.Queue), slog.Any("error", err))
			d.rest()
		}
	})
	select {
	case <-d.s.stopping:
		d.abandon()
	default:
	}
	return true
}

// abandon gives up the claim that waits for a slot, if one does.
func (d *dispatcher) abandon() {
	if t := d.pending.Load(); t != nil && t.begun.CompareAndSwap(false, true) {
		t.stop()
	}
}

// rest ends a claim that no other follows.
func (d *dispatcher) rest() {
	d.pending.Store(nil)
	signal(d.idle)
}

// work claims a task and works on it. It runs on a slot.
func (d *dispatcher) work(ctx context.Context) {
	s := d.s
	select {
	case <-s.stopping:
		d.rest()
		return
	default:
	}
	asked := s.q.clock.now()
	claimed, err := s.q.store.Claim(ctx, asked, d.claim)
	if err != nil {
		s.q.cfg.Logger.Error("claim tasks", slog.String("queue", d.claim.Queue), slog.Any("error", err))
	}
	if len(claimed.Tasks) == 0 {
		if !claimed.Next.IsZero() {
			d.next.Store(claimed.Next.UnixNano())
		}
		d.rest()
		return
	}
	d.pending.Store(nil)
	d.start() //nolint:contextcheck // the next one is not a part of this one
	s.perform(ctx, claimed.Tasks[0], asked.Add(s.q.cfg.Lease))
}

// perform works on a task that was claimed, and hands its outcome to the
// settler. The lease ends at until by the clock of this process: by that of the
// store it may have another time of day.
func (s *session) perform(ctx context.Context, t Task, until time.Time) {
	ctx, cancel := context.WithCancelCause(stint.WithPriority(ctx, t.Tier))
	defer cancel(nil)
	if t.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, t.Timeout)
		defer stop()
	}
	r := &run{task: t, cancel: cancel}
	r.lapse = time.AfterFunc(until.Sub(s.q.clock.now()), func() { cancel(ErrStale) })
	defer r.lapse.Stop()
	s.add(r)
	err := errExited
	defer func() { s.outcomes <- s.q.outcome(ctx, r, err) }() // also if the handler ends its goroutine
	err = protect(ctx, s.q.handlers[t.Kind], r)
}
