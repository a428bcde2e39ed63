package sched

import (
	"context"
	"slices"

	"github.com/stintgo/stint/internal/backlog"
)

// backpressure blocks the submitters that find a bounded queue full. Each waits with an
// entry of its own, in the order of the queue. A submitter does not touch its job again:
// the call that makes room queues the job under the same lock. So jobs are queued in the
// order in which their submitters are admitted, however late a submitter wakes. The
// engine's lock guards it.
type backpressure struct {
	e   *Engine
	log *backlog.Backlog[*entry] // nil if the queue has no bound
}

// any reports whether a submitter is blocked.
func (b *backpressure) any() bool { return b.log != nil && b.log.Len() > 0 }

// closed returns a bit for each tier with a blocked submitter.
func (b *backpressure) closed() uint8 {
	if b.log == nil {
		return 0
	}
	return b.log.Closed(0)
}

// wait blocks the submitter of a job until the queue has room for one more. It is called
// with the lock held and returns without it.
func (b *backpressure) wait(ctx context.Context, a arrival) error {
	e := b.e
	x := e.entries.waiter(a.Ask)
	x.brings = &a
	e.queue.most = max(e.queue.most, int(a.Weight))
	e.queue.clock.last++
	e.queue.read()
	x.since = e.queue.clock.last
	b.log.PushAt(&x.node, backlog.Arrival{Tier: a.Tier, Key: a.Key, Weight: 1}, uint64(x.since))
	e.dispatchAndUnlock(0, false) // the gate is not marked for the tier yet
	var suspended Suspended
	if a.from != besideFunction {
		suspended = Suspend(ctx)
	}
	err := b.await(ctx, x)
	suspended.Resume()
	x.recycle()
	return err
}

// await waits until x is admitted or refused, or ctx ends.
func (b *backpressure) await(ctx context.Context, x *entry) error {
	select {
	case <-x.ready:
		return x.err
	case <-ctx.Done():
	}
	b.e.lock()
	if b.log.Remove(&x.node) {
		b.e.dispatchAndUnlock(0, false) // the next job may need no room
		return context.Cause(ctx)
	}
	b.e.unlock()
	<-x.ready // admitted at the same moment: the job is queued, and the end of ctx removes it
	return x.err
}

// admit queues the job of the next submitter, in the order in which the queue would serve
// them, if the queue has room for it or the job can start at once. It reports whether it
// did. It is called when nothing that is queued may start. While a worker is on its way,
// that worker may be for a queued job, and it calls admit again.
func (b *backpressure) admit(running int) bool {
	if !b.any() || !b.e.mayStart() {
		return false
	}
	n := b.log.Peek(b.e.queue.log().Len())
	if n == nil {
		if n = b.log.Peek(0); !b.startsAtOnce(n.Value.Ask, running) {
			return false
		}
	}
	b.log.Start(n)
	x := n.Value
	b.log.Keys().Finish(x.Key)
	x.brings.enqueue()
	b.e.decided.granted.append(x)
	return true
}

// startsAtOnce reports whether the job of a submitter needs no room: a slot is free for
// it, and nothing that is queued goes first, since caps or keys hold all of that back.
func (b *backpressure) startsAtOnce(a Ask, running int) bool {
	return b.e.cfg.Slots == nil && b.e.admits(a, running)
}

// refuse refuses the submitters of jobs of a weight for which why returns an error.
func (b *backpressure) refuse(why func(weight int) error) {
	if b.log == nil {
		return
	}
	for _, n := range slices.Backward(b.log.Entries()) { // the last first: otherwise their keys are charged
		if err := why(int(n.Value.Weight)); err != nil {
			b.log.Remove(n)
			n.Value.err = err
			b.e.decided.granted.append(n.Value)
		}
	}
}
