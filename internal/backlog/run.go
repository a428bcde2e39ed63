package backlog

import "math/bits"

// A run is many pieces of work without a key, one behind the other, for which one entry
// stands. The caller keeps the pieces, in a list that is smaller and quicker than one
// of entries. They are all that has no key in their tier: the order in it is the
// caller's. The backlog counts them through a pointer, so that a piece which is put
// behind others costs nothing here.
//
// In the order between keys a piece is tagged when it comes first: with the end of the one before
// it, or with its tag if that left without having started.

// PushRun queues e for a run that begins with one piece, with a ticket of the caller's, larger
// than those before it; see [Backlog.PushAged]. n is how many pieces there are, as long as
// e is queued; what points there must not change for the tier.
func (b *Backlog[T]) PushRun(e *Entry[T], tier, weight int, ticket uint64, n *int) {
	t := &b.tiers[tier]
	t.run, t.plain.run = n, true
	b.push(e, tier, "", 0, weight, ticket)
}

// StartFirst is [Backlog.Start] for the first piece of a run that has others, the next
// of which has this weight and ticket.
func (b *Backlog[T]) StartFirst(e *Entry[T], weight int, ticket uint64) {
	l := e.line
	b.tiers[l.tier].pass(l.flow.start(e), e.weight)
	b.endTurn()
	b.follow(e, weight, ticket)
}

// Alone returns the tier of the run that is all that is queued, if that tier has no cap below
// the maximum, else -1. Then a caller needs no backlog to know what starts next, as long as
// pieces weigh 1: see StartMany.
func (b *Backlog[T]) Alone() (tier int) {
	if b.queued != 1 || b.eligible == 0 {
		return -1
	}
	tier = bits.Len8(b.eligible) - 1
	if f := &b.tiers[tier].plain; f.run && f.queued == 1 && b.caps[tier] == b.max {
		return tier
	}
	return -1
}

// StartMany is n ≥ 1 times [Backlog.StartFirst], while the run was alone and its pieces weighed
// 1.
func (b *Backlog[T]) StartMany(e *Entry[T], n uint64, weight int, ticket uint64) {
	t, f := &b.tiers[e.line.tier], e.line.flow
	last := max(e.tag, f.floor) + (n-1)*unit // the tag of the last that starts
	t.virtual = max(last, t.virtual+n*unit)
	f.floor = last + unit
	b.turn = int((uint64(b.turn) + n) % Cycle)
	b.follow(e, weight, ticket)
}

// DropFirst is [Backlog.Remove] for the first piece of such a run.
func (b *Backlog[T]) DropFirst(e *Entry[T], weight int, ticket uint64) { b.follow(e, weight, ticket) }

// follow has e stand for the next piece.
func (b *Backlog[T]) follow(e *Entry[T], weight int, ticket uint64) {
	e.weight, e.ticket = int32(weight), ticket
	t := &b.tiers[e.line.tier]
	b.settle(e.line)
	if len(t.rest) > 0 {
		b.expire(t)
	}
}

// len is the number of entries of the tier, of which a run is as many as it has pieces.
func (t *tier[T]) len() int {
	if t.run == nil || t.plain.queued == 0 {
		return t.queued
	}
	return t.queued + *t.run - 1
}

// pieces is the number of entries of a line, or of the pieces of a run.
func (t *tier[T]) pieces(l *line[T]) int {
	if l.flow.run {
		return *t.run
	}
	return int(l.n)
}

// WhyPiece is [Backlog.Why] for a piece of a run that has some ahead of it.
func (b *Backlog[T]) WhyPiece(e *Entry[T], ahead, weight, running int) Reasons {
	return b.why(e, ahead, weight, running)
}

// Empty reports whether nothing is queued.
func (b *Backlog[T]) Empty() bool { return b.queued == 0 }
