// Package backlog is the policy that decides which waiting entry starts next.
//
// It is pure: no clock, no goroutine, no randomness. Events go in (an entry
// arrives, leaves, a running one finishes), decisions come out, and the same
// events always give the same decisions. The scheduler, the durable queue and
// a simulation run this same code, so any schedule can be replayed.
//
// # Order
//
// Entries wait in seven tiers. In a tier, what one key has queued is a flow; so
// are the entries without a key. The flows of a tier take turns by start-time
// fair queueing (Goyal, Vin, Cheng: "Start-time Fair Queueing", SIGCOMM 1996): an
// entry gets a virtual start tag when it is queued, and the smallest tag goes
// first, so that keys get slots in proportion to their shares however many
// entries each has queued.
//
// # Classes
//
// Someone may take only some kinds of entries. Each kind is a class, a small
// number; in a flow, every class has a line of its own. [Backlog.PeekOf] considers
// the lines of some classes, [Backlog.Peek] all. Turns are still shared between
// keys: a start is charged to its flow, and no line of that flow starts its next
// entry at an earlier virtual time than that at which the start ends. What is
// only queued in one class is not charged to another. If it were, those who take
// one class would put a key back for what others have yet to do for it, and
// virtual time would jump over that when they came to it. When it is a key's turn,
// its oldest entry of the classes that are taken starts, whatever its class.
//
// Entries of a class that nobody takes keep their tags, and thereby their age:
// they go first when somebody takes them.
//
// # Age
//
// A line is a FIFO by ticket, the order of arrival. An entry that comes back with
// the ticket that it had, such as a task to be tried again, goes before all younger
// ones of its line; those that came back go in the order of their tickets, too.
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
// Each start, and each finish that could start nothing, is a turn. Every
// eighth turn belongs to one tier, the seven tiers in rotation, so in any
// [Cycle] = 56 turns each tier has exactly one of its own and the highest
// waiting one has the other 49. On its own turn a tier starts its first entry
// past its cap, never past the maximum. A turn whose tier has nothing waiting
// goes to the highest waiting tier within caps. Hence the bound: an entry with
// a entries before it in its tier's order starts after at most 56·(a+1) turns,
// whatever arrives in the tiers above it. Turns during which its key is at its
// limit or blocked do not count, and a turn of the guard does not end while its
// entry waits for enough free slots. The a entries include later arrivals of
// other keys whose turn comes first; as virtual time moves on with every start, a
// stream of new keys cannot go before an entry for ever.
//
// The sequence is one for all who take, so the bound is for entries of a class
// that all of them take. Where they differ, a turn of the guard goes to whoever
// comes at it, and what that one does not take waits for another.
//
// # Cost
//
// Push, Peek, Start and Remove cost O(1) in a tier whose entries have one key
// or none, and O(log k) in a tier where k keys wait; for an entry that has come
// back, O(log n) more if n of its line have. PeekOf costs O(1) for each class
// that is taken, and for each that the key has entries of whose turn it is. A
// start puts the lines of its key in other classes out of date; each of them
// costs O(log k) more when it comes to the front. Nothing scans: entries of
// classes that are not taken are not looked at, and a key at its limit is set
// aside until one of its own finishes, a blocked one until it is unblocked, at
// O(log k) for each of its lines.
//
// Memory follows what waits: maps and heaps are copied when they have fallen to a
// quarter of their peak, at O(1) for each removal, amortized.
package backlog

import "math/bits"

// Tiers is the number of tiers. Tier 0 is the lowest.
const Tiers = 7

// Every guardEvery-th turn is a guard turn.
const guardEvery = 8

// Cycle is the length in turns of the guard's fixed sequence.
const Cycle = guardEvery * Tiers

// Backlog is the set of waiting entries and the policy over them. The zero
// value is not usable; see [New]. It is not safe for concurrent use.
type Backlog[T any] struct {
	max    int
	set    [Tiers]int // the caps as given
	caps   [Tiers]int // and as resolved against max
	perKey int
	limits map[string]int // of single keys, which have these instead of perKey
	share  func(key string) int

	turn     int   // position in the guard's sequence, 0 … Cycle-1
	eligible uint8 // bit per tier that has an entry which is not set aside
	queued   int
	held     int    // of those queued, by their keys
	ticket   uint64 // the last one given
	tiers    [Tiers]tier[T]
	class0   class[T] // the first of classes
	classes  []*class[T]
	all      []int              // all classes, ascending
	keys     map[string]*key[T] // keys with a flow or a running entry, and blocked ones
	keysPeak int                // as shrink.Delete has it
}

// New returns an empty backlog.
func New[T any](cfg Config) *Backlog[T] {
	b := &Backlog[T]{
		max:    cfg.Max,
		set:    cfg.Caps,
		caps:   Resolve(cfg.Max, cfg.Caps),
		perKey: cfg.PerKey,
		limits: cfg.KeyLimits,
		share:  cfg.Share,
		keys:   make(map[string]*key[T]),
	}
	b.classes, b.all = []*class[T]{&b.class0}, []int{0}
	for i := range b.tiers {
		b.tiers[i].plain.init(nil, int8(i), &b.class0, 1)
	}
	return b
}

// Push queues e in a tier, in class 0, behind what its key has queued there
// already. An empty key stands for the entries without one. It panics if e is
// queued.
func (b *Backlog[T]) Push(e *Entry[T], tier int, key string, weight int) {
	b.push(e, tier, key, 0, weight, b.ticket+1)
}

// PushClass is Push in a class, a small number of the caller's choice: the
// backlog keeps a little for each up to the largest that it has seen. It queues
// e behind what its key has queued of that class in that tier.
func (b *Backlog[T]) PushClass(e *Entry[T], tier int, key string, class, weight int) {
	b.push(e, tier, key, class, weight, b.ticket+1)
}

// PushAged is PushClass for an entry that had its ticket before: it comes back
// (its attempt failed, whoever had it is gone) or is queued anew after a restart.
// It goes before the younger ones in its line, and its start is charged like any
// other. Pushing entries in the order of their tickets costs no more than
// PushClass; one that goes before others costs O(log n) where n have come back.
// Tickets given to later arrivals are larger. No two entries of a backlog may
// have the same.
func (b *Backlog[T]) PushAged(e *Entry[T], tier int, key string, class, weight int, ticket uint64) {
	b.push(e, tier, key, class, weight, ticket)
}

func (b *Backlog[T]) push(e *Entry[T], tier int, key string, class, weight int, ticket uint64) {
	if e.line != nil {
		panic("backlog: entry is queued already")
	}
	if class >= len(b.classes) {
		b.addClasses(class)
	}
	c, t := b.classes[class], &b.tiers[tier]
	f := &t.plain
	if key != "" {
		f = b.flow(key, tier, c)
		t.wake(f)
	}
	b.ticket = max(b.ticket, ticket)
	e.ticket, e.weight = ticket, int32(weight)
	l := f.line(c)
	if l.tail == nil || ticket > l.tail.ticket {
		l.append(e, t.virtual)
	} else {
		l.comeBack(e, t.virtual)
	}
	f.queued++
	t.queued++
	b.queued++
	if k := f.key; k != nil {
		k.queued++
		if k.aside {
			b.held++
			return
		}
	}
	if l.n == 1 {
		b.enter(l)
	} else if e == l.first() {
		b.settle(l)
	}
}

// Peek returns the entry that starts next when running slots are in use, or
// nil if none may start. It decides nothing: call [Backlog.Start] to take the
// entry, or [Backlog.Pass] when a finish started nothing.
func (b *Backlog[T]) Peek(running int) *Entry[T] {
	e, _ := b.next(running, b.eligible, b.all)
	if e == nil || running+int(e.weight) > b.max {
		return nil
	}
	return e
}

// PeekOf is Peek for someone who takes only some classes. Entries of the others
// are as if they did not wait, whichever tier they are in. Whoever starts none
// calls [Backlog.PassOf].
func (b *Backlog[T]) PeekOf(running int, classes []int) *Entry[T] {
	e, _ := b.next(running, b.readyIn(classes), classes)
	if e == nil || running+int(e.weight) > b.max {
		return nil
	}
	return e
}

// next chooses the entry of some classes, which are ready in some tiers, whose
// turn it is, and whether that is the guard's doing. The entry may be too heavy
// for the slots that are free.
func (b *Backlog[T]) next(running int, ready uint8, classes []int) (e *Entry[T], guard bool) {
	if running >= b.max || ready == 0 {
		return nil, false
	}
	if own, ok := b.guardTier(); ok && ready&(1<<own) != 0 {
		return b.first(own, classes).first(), true
	}
	if highest := b.highest(running, ready); highest >= 0 {
		return b.first(highest, classes).first(), false
	}
	return nil, false
}

// highest returns the highest of some tiers that is below its cap, or -1.
func (b *Backlog[T]) highest(running int, tiers uint8) (tier int) {
	for tiers != 0 {
		tier = bits.Len8(tiers) - 1
		if running < b.caps[tier] {
			return tier
		}
		tiers &^= 1 << tier
	}
	return -1
}

// guardTier returns the tier that owns the present turn.
func (b *Backlog[T]) guardTier() (tier int, ok bool) {
	if b.turn%guardEvery != guardEvery-1 {
		return 0, false
	}
	return b.turn / guardEvery, true
}

// Start takes e, which Peek returned, out of the backlog: it runs now. That
// ends the turn.
func (b *Backlog[T]) Start(e *Entry[T]) {
	l := e.line
	k := l.flow.key
	b.tiers[l.tier].pass(l.flow.start(e), e.weight)
	if k != nil {
		k.running++ // first, or unlink forgets a key with nothing left
	}
	b.unlink(e)
	b.endTurn()
	if k != nil {
		b.review(k)
	}
}

// Pass ends a turn in which a finish could start nothing because of the caps.
// A turn of the guard whose entry waits for enough free slots is not over and
// stays.
func (b *Backlog[T]) Pass(running int) {
	b.PassOf(running, b.all)
}

// PassOf is Pass for someone who takes only some classes. A turn of the guard
// whose entry is of another class is over: it may be that nobody takes it.
func (b *Backlog[T]) PassOf(running int, classes []int) {
	if b.eligible == 0 || running >= b.max {
		return
	}
	if _, guard := b.next(running, b.readyIn(classes), classes); !guard {
		b.endTurn()
	}
}

func (b *Backlog[T]) endTurn() {
	b.turn++
	if b.turn == Cycle {
		b.turn = 0
	}
}

// Remove takes a queued entry out without running it and reports whether it
// was queued.
func (b *Backlog[T]) Remove(e *Entry[T]) bool {
	if e.line == nil {
		return false
	}
	b.unlink(e)
	return true
}

// Len is the number of queued entries.
func (b *Backlog[T]) Len() (n int) {
	for tier := range b.tiers {
		n += b.tiers[tier].len()
	}
	return n
}

// LenTier is the number of entries queued in a tier.
func (b *Backlog[T]) LenTier(tier int) int { return b.tiers[tier].len() }

// unlink takes e out of its line and gives the line its new place.
func (b *Backlog[T]) unlink(e *Entry[T]) {
	l := e.line
	t := &b.tiers[l.tier]
	first := e == l.first()
	l.remove(e)
	l.flow.queued--
	t.queued--
	b.queued--
	if k := l.flow.key; k != nil {
		k.queued--
		if k.aside {
			b.held--
		}
	}
	if first {
		b.settle(l)
		if len(t.rest) > 0 {
			b.expire(t)
		}
	}
}
