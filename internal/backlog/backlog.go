// Package backlog is the policy that decides which waiting entry starts next.
//
// It is pure: no clock, no goroutine, no randomness. Events go in (an entry
// arrives, leaves, a running one finishes), decisions come out, and the same
// events always give the same decisions. The scheduler, the durable queue and
// a simulation run this same code, so any schedule can be replayed.
//
// # Order
//
// Entries wait in seven tiers. In a tier, the entries of a key are a flow; so are
// the entries without a key. The flows of a tier take turns by start-time
// fair queueing (Goyal, Vin, Cheng: "Start-time Fair Queueing", SIGCOMM 1996): an
// entry gets a virtual start tag when it is queued, and the smallest tag goes
// first, so that keys get slots in proportion to their shares however many
// entries each has queued.
//
// # Classes
//
// A taker may take only some kinds of entries. Each kind is a class, a small
// number; in a flow, every class has a queue of its own. [Backlog.PeekOf] considers
// the queues of some classes, [Backlog.Peek] all. Turns are still shared between
// keys: a start is charged to its flow, and no queue of that flow starts its next
// entry at an earlier virtual time than that at which the start ends. What is
// only queued in one class is not charged to another. If it were, a key would be
// charged in one class for entries of another that have not started, and virtual
// time would jump over these when they start. When it is a key's turn,
// its oldest entry of the classes that are taken starts, whatever its class.
//
// Entries of a class that nothing takes keep their tags, and thereby their age:
// they go first when they are taken.
//
// # Age
//
// A queue is a FIFO by ticket, the order of arrival. An entry that comes back with
// the ticket that it had, such as a task to be tried again, goes before all younger
// ones of its queue; those that came back go in the order of their tickets, too.
// In the order between keys it counts as queued when it came back.
//
// # Caps
//
// A tier starts entries only while the running total is below its cap; see
// [Resolve] for how caps inherit. An entry may need several slots (its weight).
// An entry that is next but too heavy for the slots that are free is never
// passed over by its own tier or a lower one.
//
// # The starvation guard
//
// Each start is a turn, and so is each finish after which the caps allow no
// start. Every eighth turn belongs to one tier, the seven tiers in rotation, so in any
// [Cycle] = 56 turns each tier has exactly one of its own and the highest
// waiting one has the other 49. On its own turn a tier starts its first entry
// past its cap, never past the maximum. A turn whose tier has nothing waiting
// goes to the highest waiting tier within caps. Hence the bound: an entry with
// n entries before it in its tier's order starts after at most 56·(n+1) turns,
// whatever arrives in the tiers above it. Turns during which its key is at its
// limit or blocked do not count, and a turn of the guard does not end while its
// entry waits for enough free slots. The n entries include later arrivals of
// other keys whose turn comes first; as virtual time moves on with every start, a
// stream of new keys cannot go before an entry for ever.
//
// All takers share one sequence, so the bound holds for entries of a class that
// all of them take. If they take different classes, a turn of the guard belongs to
// the taker that asks during it, and entries that this taker does not take wait for
// a later turn.
//
// # Cost
//
// Push, PushAt, Peek, Start and Remove cost O(1) in a tier whose entries have one key
// or none, and O(log k) in a tier where k keys wait; for an entry that PushAt has put
// before others of its queue, O(log n) more if n of these are queued. PeekOf costs O(1) for each class
// that is taken, and for each that the key has entries of whose turn it is. A
// start puts the queues of its key in other classes out of date; each of them
// costs O(log k) more when it comes to the front. Nothing scans: entries of
// classes that are not taken are not looked at, and a key at its limit is set
// aside until one of its own finishes, a blocked one until it is unblocked, at
// O(log k) for each of its queues.
//
// Memory follows what waits: maps and heaps are copied when they have fallen to a
// quarter of their peak, at O(1) for each removal, amortized.
//
// # Files
//
//   - backlog.go: [Backlog], the decisions
//   - config.go: [Config], what a Backlog admits
//   - admission.go: which arrivals need not queue
//   - why.go: the reasons of the decisions
//   - ahead.go: how many entries go before another
//   - bounds.go: [Bounds], the maximum and the caps
//   - guard.go: the turns of the starvation guard
//   - keys.go: [Keys], with counts, limits and blocking by key
//   - key.go: one key
//   - order.go: what waits, and which of it may start, without limits
//   - tier.go: one tier of it
//   - flow.go: the entries of one key in one tier
//   - class.go: the queues of one class
//   - queue.go: the entries of a flow in one class
//   - queues.go: a heap of queues
//   - aged.go: the entries of a queue that came back
//   - rebase.go: virtual times do not overflow
//   - entry.go: [Entry], one waiting thing
//   - run.go: [Run], many pieces of work for which one entry stands
//   - snapshot.go: [Scan], a copy in pieces
//   - chunks.go: the list that it fills
package backlog

import (
	"cmp"
	"slices"
)

// Tiers is the number of tiers. Tier 0 is the lowest.
const Tiers = 7

// Backlog is the set of waiting entries and the policy over them. The zero
// value is not usable; see [New]. It is not safe for concurrent use.
type Backlog[T any] struct {
	// Small fields come first, here and in order: behind the 1.5 KB of tiers, a push and a start
	// take some percent longer.

	bounds Bounds
	guard  guard
	ticket uint64 // the last one given
	keys   Keys[T]
	order  order[T]
}

// New returns an empty backlog.
func New[T any](cfg Config) *Backlog[T] {
	b := new(Backlog[T])
	b.order.init()
	b.bounds.set(cfg.Max, cfg.Caps)
	b.keys = Keys[T]{
		order: &b.order, perKey: cfg.PerKey, limits: cfg.KeyLimits, shared: cfg.SharedLimits, share: cfg.Share,
		turned: cfg.Turned,
		known:  make(map[string]*key[T]),
	}
	return b
}

// Keys returns the keys of the backlog.
func (b *Backlog[T]) Keys() *Keys[T] { return &b.keys }

// Bounds returns the maximum and the caps of the backlog.
func (b *Backlog[T]) Bounds() *Bounds { return &b.bounds }

// Arrival is how an entry is queued. It has four words in four fields: the compiler keeps a struct
// of that size in registers, and copies a larger one to memory, which takes a twentieth of the time
// of a push and a start.
type Arrival struct {
	// Key is empty for an entry without one.
	Key string
	// Class is a small number of the caller's choice: the backlog keeps a little for each up
	// to the largest that it has seen.
	Class int32
	// Weight is the number of slots that the entry needs, at least 1.
	Weight int32
	// Tier is from 0, the lowest, to Tiers-1.
	Tier int8
}

// Push queues e behind those of its tier, key and class. It panics if e is queued. It
// costs O(1) besides the order between keys.
func (b *Backlog[T]) Push(e *Entry[T], a Arrival) { b.PushAt(e, a, b.ticket+1) }

// PushAt is Push for an entry that has a place in the order of arrival: its ticket, from 1. An
// entry that comes back (its attempt failed, or the process that ran it is gone), or is queued again
// after a restart, has its previous ticket. No two entries of a backlog may have the same ticket;
// tickets of later arrivals are larger. It panics if e is queued. An entry that goes before
// others of its tier, key and class costs O(log n) more where n have come back.
func (b *Backlog[T]) PushAt(e *Entry[T], a Arrival, ticket uint64) {
	if e.queue != nil {
		panic("backlog: entry is queued already")
	}
	c, t := b.order.class(int(a.Class)), &b.order.tiers[a.Tier]
	f := &t.plain
	if a.Key != "" {
		f = b.keys.flow(a.Key, int(a.Tier), c)
		t.wake(f)
	}
	b.ticket = max(b.ticket, ticket)
	e.ticket, e.weight = ticket, a.Weight
	q := f.queue(c)
	if q.tail == nil || ticket > q.tail.ticket {
		q.append(e, t.virtual)
	} else {
		q.comeBack(e, t.virtual)
	}
	f.queued++
	t.queued++
	b.order.queued++
	aside := b.keys.count(f.key, 1)
	switch {
	case aside:
	case q.n == 1:
		b.order.enter(q)
	case e == q.first():
		b.order.settle(q)
	}
	if t.virtual >= rebaseAt {
		b.rebase(int(a.Tier))
	}
}

// Peek returns the entry that starts next when running slots are in use, or
// nil if none may start. It decides nothing: call [Backlog.Start] to take the
// entry, or [Backlog.Pass] when a finish started nothing.
func (b *Backlog[T]) Peek(running int) *Entry[T] {
	e, _ := b.next(running, b.order.eligible, b.order.all)
	if e == nil || int(e.weight) > b.bounds.max-running {
		return nil
	}
	return e
}

// PeekOf is Peek for a taker of only some classes. Entries of the others
// are as if they did not wait, whichever tier they are in. A taker that starts none
// calls [Backlog.PassOf].
func (b *Backlog[T]) PeekOf(running int, classes []int) *Entry[T] {
	e, _ := b.next(running, b.order.readyIn(classes), classes)
	if e == nil || int(e.weight) > b.bounds.max-running {
		return nil
	}
	return e
}

// next chooses the entry of some classes, which are ready in some tiers, whose
// turn it is, and whether the guard chose it. The entry may be too heavy
// for the slots that are free.
func (b *Backlog[T]) next(running int, ready uint8, classes []int) (e *Entry[T], guarded bool) {
	if running >= b.bounds.max || ready == 0 {
		return nil, false
	}
	if own, ok := b.guard.tier(); ok && ready&(1<<own) != 0 {
		return b.order.first(own, classes).first(), true
	}
	if highest := b.bounds.highest(running, ready); highest >= 0 {
		return b.order.first(highest, classes).first(), false
	}
	return nil, false
}

// Start takes e, which Peek returned, out of the backlog: it runs now. That
// ends the turn.
func (b *Backlog[T]) Start(e *Entry[T]) {
	q := e.queue
	k := q.flow.key
	b.order.tiers[q.tier].pass(q.flow.start(e), e.weight)
	if k != nil {
		k.running++ // first, or unlink forgets a key with nothing left
	}
	b.unlink(e)
	b.guard.end()
	if k != nil {
		b.keys.review(k)
	}
}

// Pass ends a turn in which a finish could start nothing because of the caps.
// A turn of the guard whose entry waits for enough free slots is not over and
// stays.
func (b *Backlog[T]) Pass(running int) {
	b.PassOf(running, b.order.all)
}

// PassOf is Pass for a taker of only some classes. A turn of the guard
// whose entry is of another class is over: perhaps nothing takes that class.
func (b *Backlog[T]) PassOf(running int, classes []int) {
	if b.order.eligible == 0 || running >= b.bounds.max {
		return
	}
	if _, guarded := b.next(running, b.order.readyIn(classes), classes); !guarded {
		b.guard.end()
	}
}

// Remove takes a queued entry out without running it and reports whether it
// was queued.
func (b *Backlog[T]) Remove(e *Entry[T]) bool {
	if e.queue == nil {
		return false
	}
	b.unlink(e)
	return true
}

// unlink takes e out of its queue and gives the queue its new place.
func (b *Backlog[T]) unlink(e *Entry[T]) {
	q := e.queue
	t := &b.order.tiers[q.tier]
	first := e == q.first()
	q.remove(e)
	q.flow.queued--
	t.queued--
	b.order.queued--
	b.keys.count(q.flow.key, -1)
	if first {
		b.order.settle(q)
		if len(t.rest) > 0 {
			b.keys.expire(t)
		}
	}
}

// Empty reports whether nothing is queued.
func (b *Backlog[T]) Empty() bool { return b.order.queued == 0 }

// Len is the number of queued entries.
func (b *Backlog[T]) Len() int { return b.order.len() }

// LenTier is the number of entries queued in a tier.
func (b *Backlog[T]) LenTier(tier int) int { return b.order.tiers[tier].len() }

// Entries returns all queued entries in the order of their arrival. The cost
// is linear in their number.
func (b *Backlog[T]) Entries() []*Entry[T] {
	all := make([]*Entry[T], 0, b.order.queued)
	collect := func(q *queue[T]) { all = q.appendTo(all) }
	for i := range b.order.tiers {
		b.order.tiers[i].plain.each(collect)
	}
	for _, k := range b.keys.known {
		for f := k.flows; f != nil; f = f.next {
			f.each(collect)
		}
	}
	slices.SortFunc(all, func(x, y *Entry[T]) int { return cmp.Compare(x.ticket, y.ticket) })
	return all
}
