package sched

import (
	"context"
	"slices"

	"github.com/stintgo/stint/internal/backlog"
)

// door is where submitters wait that find a bounded queue full, each with an entry of
// its own in the order of the queue. A submitter does not touch its job again: the call that
// makes room queues the job under the same lock. So jobs are queued in the order in which
// they are let in, and the submitter may be slow to wake. The engine's lock guards it.
type door struct {
	e   *Engine
	log *backlog.Backlog[*entry] // nil if the queue has no bound
}

// busy reports whether a submitter waits.
func (d *door) busy() bool { return d.log != nil && d.log.Len() > 0 }

// closed returns a bit for each tier of which a submitter waits.
func (d *door) closed() uint8 {
	if d.log == nil {
		return 0
	}
	return d.log.Closed(0)
}

// enter has the submitter of a job wait until the queue has room for one more. It is
// called with the lock held and returns without.
func (d *door) enter(ctx context.Context, a arrival) error {
	e := d.e
	x := e.waiter(a.Ask)
	x.brings = &a
	e.queue.clock.last++
	e.queue.read()
	x.since = e.queue.clock.last
	d.log.Push(&x.node, backlog.Arrival{Tier: int(a.Tier), Key: a.Key, Weight: 1, Ticket: uint64(x.since)})
	e.dispatchAndUnlock(0, false) // the gate has yet to be marked for the tier
	lent := Lend(ctx)
	err := d.await(ctx, x)
	lent.Reclaim()
	x.recycle()
	return err
}

// await waits until x is let through the door, or ctx ends.
func (d *door) await(ctx context.Context, x *entry) error {
	select {
	case <-x.ready:
		return x.err
	case <-ctx.Done():
	}
	d.e.lock()
	if d.log.Remove(&x.node) {
		d.e.dispatchAndUnlock(0, false) // the next one may need no room
		return context.Cause(ctx)
	}
	d.e.unlock()
	<-x.ready // let through at the same moment: the job is queued, and the end of ctx takes it out
	return x.err
}

// open queues the job of the next submitter, in the order in which the queue
// would serve them, if the queue has room for it or it would not stay there, and reports
// whether it did. It is called when nothing that is queued may start. As
// long as a worker is on its way it may be for a job that is queued, and the
// worker will call again.
func (d *door) open(running int) bool {
	if !d.busy() || !d.e.mayStart() {
		return false
	}
	n := d.log.Peek(d.e.queue.log().Len())
	if n == nil {
		if n = d.log.Peek(0); !d.startsAtOnce(n.Value.Ask, running) {
			return false
		}
	}
	d.log.Start(n)
	x := n.Value
	d.log.Keys().Finish(x.Key)
	x.brings.enqueue(d.e)
	d.e.news.granted.append(x)
	return true
}

// startsAtOnce reports whether the job of a submitter needs no room: a slot is
// free for it, and nothing that is queued goes before it. What is queued may all
// be held back, by caps or by its keys.
func (d *door) startsAtOnce(a Ask, running int) bool {
	return d.e.cfg.Slots == nil && d.e.admits(a, running)
}

// refuse refuses the submitters of jobs of a weight for which why gives an error.
func (d *door) refuse(why func(weight int) error) {
	if d.log == nil {
		return
	}
	for _, n := range slices.Backward(d.log.Entries()) { // the last first, or they are charged to their keys
		if err := why(int(n.Value.Weight)); err != nil {
			d.log.Remove(n)
			n.Value.err = err
			d.e.news.granted.append(n.Value)
		}
	}
}
