package backlog

import "math/bits"

// Run is a sequence of pieces of work without a key, which one entry represents. The
// caller keeps the pieces, in a list that is smaller and faster than one of entries,
// and determines their order. A tier with a run has no other entries without a key. The
// backlog counts the pieces through a pointer, so a piece that is appended to others
// costs nothing here.
//
// In the order between keys a piece is tagged when it comes first: with the end of the one before
// it, or with its tag if that left without having started.
type Run[T any] struct {
	// Entry represents the pieces: [Backlog.Peek] returns it, and [Backlog.Start] and
	// [Backlog.Remove] remove it together with the last piece.
	Entry[T]

	b *Backlog[T]
}

// PushTo queues a run that begins with one piece, with a ticket larger than those of all earlier pieces. n is
// how many pieces there are, as long as the run is queued; the pointer must not change for the
// tier. It panics if the arrival has a key or a class, or if the run is queued.
func (r *Run[T]) PushTo(b *Backlog[T], a Arrival, ticket uint64, n *int) {
	if a.Key != "" || a.Class != 0 {
		panic("backlog: a run has no key and is of class 0")
	}
	r.b = b
	t := &b.order.tiers[a.Tier]
	t.run, t.plain.run = n, true
	b.PushAt(&r.Entry, a, ticket)
}

// StartFirst is [Backlog.Start] for the first piece of a run that has others, the next
// of which has this weight and ticket.
func (r *Run[T]) StartFirst(weight int, ticket uint64) {
	q := r.queue
	r.b.order.tiers[q.tier].pass(q.flow.start(&r.Entry), r.weight)
	r.b.guard.end()
	r.follow(weight, ticket)
}

// StartMany has the effect of n ≥ 1 calls of StartFirst, made while the run was alone and its
// pieces had weight 1. The weight and the ticket are those of the piece that is first then.
func (r *Run[T]) StartMany(n uint64, weight int, ticket uint64) {
	t, f := &r.b.order.tiers[r.queue.tier], r.queue.flow
	last := max(r.tag, f.floor) + (n-1)*unit // the tag of the last that starts
	t.virtual = max(last, t.virtual+n*unit)
	f.floor = last + unit
	r.b.guard.pass(n)
	r.follow(weight, ticket)
}

// DropFirst is [Backlog.Remove] for the first piece of a run that has others, the next of
// which has this weight and ticket.
func (r *Run[T]) DropFirst(weight int, ticket uint64) { r.follow(weight, ticket) }

// follow makes the entry represent the next piece.
func (r *Run[T]) follow(weight int, ticket uint64) {
	r.weight, r.ticket = int32(weight), ticket
	t := &r.b.order.tiers[r.queue.tier]
	if t.virtual >= rebaseAt { // pieces that are put behind others do not call PushAt
		r.b.rebase(int(r.queue.tier))
	}
	r.b.order.settle(r.queue)
	if len(t.rest) > 0 {
		r.b.keys.expire(t)
	}
}

// Why is [Backlog.Why] for a piece of the run that has some ahead of it.
func (r *Run[T]) Why(ahead, weight, running int) Reasons {
	return r.b.why(&r.Entry, ahead, weight, running, r.b.order.all)
}

// Alone returns the tier of a run if nothing else is queued and that tier has no cap below the
// maximum, and -1 otherwise. The run's first piece then starts next, without a decision of the
// backlog, as long as pieces weigh 1: see [Run.StartMany].
func (b *Backlog[T]) Alone() (tier int) {
	if b.order.queued != 1 || b.order.eligible == 0 {
		return -1
	}
	tier = bits.Len8(b.order.eligible) - 1
	if f := &b.order.tiers[tier].plain; f.run && f.queued == 1 && b.bounds.caps[tier] == b.bounds.max {
		return tier
	}
	return -1
}

// len returns the number of entries of the tier; a run counts as often as it has pieces.
func (t *tier[T]) len() int {
	if t.run == nil || t.plain.queued == 0 {
		return t.queued
	}
	return t.queued + *t.run - 1
}

// pieces returns the number of entries of a queue, or of pieces if it is that of a run.
func (t *tier[T]) pieces(q *queue[T]) int {
	if q.flow.run {
		return *t.run
	}
	return int(q.n)
}
