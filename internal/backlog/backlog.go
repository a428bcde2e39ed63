// Package backlog is the policy that decides which waiting entry starts next.
//
// It is pure: no clock, no goroutine, no randomness. Events go in (an entry
// arrives, leaves, a running one finishes), decisions come out, and the same
// events always give the same decisions. The scheduler, the durable queue and
// a simulation run this same code, so any schedule can be replayed.
//
// # Order
//
// Entries wait in seven tiers. In a tier, every key has a line of its own, a
// FIFO; entries without a key share one line. The lines of a tier take turns by
// start-time fair queueing (Goyal, Vin, Cheng: "Start-time Fair Queueing",
// SIGCOMM 1996): an entry gets a virtual start tag when it is queued, and the
// smallest tag goes first, so that keys get slots in proportion to their
// shares however many entries each has queued.
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
// limit do not count, and a turn of the guard does not end while its entry waits
// for enough free slots. The a entries include later arrivals of other keys whose
// turn comes first; as virtual time moves on with every start, a stream of new
// keys cannot go before an entry for ever.
//
// # Cost
//
// Push, Peek, Start and Remove cost O(1) in a tier whose entries have one key
// or none, and O(log k) in a tier where k keys wait. Nothing scans: a key at
// its limit is set aside until one of its own finishes.
package backlog

import "math/bits"

// Tiers is the number of tiers. Tier 0 is the lowest.
const Tiers = 7

// Every guardEvery-th turn is a guard turn.
const guardEvery = 8

// Cycle is the length in turns of the guard's fixed sequence.
const Cycle = guardEvery * Tiers

// Config is what a [Backlog] admits. The zero value admits nothing, because its
// Max is 0.
type Config struct {
	// Max is the most slots in use at once.
	Max int
	// Caps are the caps of the tiers as the user set them, 0 for unset.
	Caps [Tiers]int
	// PerKey is the most entries of one key that run at once, 0 for no limit.
	PerKey int
	// Share returns the weight of a key in the fairness between keys, at least
	// 1. Nil gives every key the same.
	Share func(key string) int
}

// Backlog is the set of waiting entries and the policy over them. The zero
// value is not usable; see [New]. It is not safe for concurrent use.
type Backlog[T any] struct {
	max    int
	set    [Tiers]int // the caps as given
	caps   [Tiers]int // and as resolved against max
	perKey int
	share  func(key string) int

	turn     int   // position in the guard's sequence, 0 … Cycle-1
	eligible uint8 // bit per tier that has an entry whose key is not at its limit
	queued   int
	ticket   uint64 // the last one given
	tiers    [Tiers]tier[T]
	keys     map[string]*key[T] // keys with a line or a running entry
}

// New returns an empty backlog.
func New[T any](cfg Config) *Backlog[T] {
	b := &Backlog[T]{
		max:    cfg.Max,
		set:    cfg.Caps,
		caps:   Resolve(cfg.Max, cfg.Caps),
		perKey: cfg.PerKey,
		share:  cfg.Share,
		keys:   make(map[string]*key[T]),
	}
	for i := range b.tiers {
		b.tiers[i].plain = line[T]{tier: int8(i), pos: nowhere, share: 1, cost: unit}
	}
	return b
}

// Resolve gives the effective caps of set under max. An unset tier (0)
// inherits the cap of the tier just below it; tiers above the topmost set one
// get max; unset tiers below the bottommost set one get that one's; and every
// cap is at most max.
func Resolve(maximum int, set [Tiers]int) [Tiers]int {
	var caps [Tiers]int
	below, top := 0, -1
	for i, limit := range set {
		if limit > 0 {
			top = i
			if below == 0 {
				below = limit
			}
		}
	}
	for i, limit := range set {
		switch {
		case i > top:
			below = maximum
		case limit > 0:
			below = limit
		}
		caps[i] = min(below, maximum)
	}
	return caps
}

// Push queues e in a tier, behind what its key has queued there already. An
// empty key is the line of the entries without one. It panics if e is queued.
func (b *Backlog[T]) Push(e *Entry[T], tier int, key string, weight int) {
	if e.line != nil {
		panic("backlog: entry is queued already")
	}
	t := &b.tiers[tier]
	l := &t.plain
	if key != "" {
		l = b.keyLine(key, tier)
	}
	if l.n == 0 && l.pos != nowhere {
		t.rest.remove(l)
	}
	b.ticket++
	e.ticket, e.weight = b.ticket, int32(weight)
	l.append(e, t.virtual)
	t.queued++
	b.queued++
	if l.n == 1 && !b.atLimit(l.key) {
		b.enter(l)
	}
}

// Peek returns the entry that starts next when running slots are in use, or
// nil if none may start. It decides nothing: call [Backlog.Start] to take the
// entry, or [Backlog.Pass] when a finish started nothing.
func (b *Backlog[T]) Peek(running int) *Entry[T] {
	e, _ := b.next(running)
	if e == nil || running+int(e.weight) > b.max {
		return nil
	}
	return e
}

// next chooses the entry whose turn it is, and whether that is the guard's
// doing. The entry may be too heavy for the slots that are free.
func (b *Backlog[T]) next(running int) (e *Entry[T], guard bool) {
	if running >= b.max || b.eligible == 0 {
		return nil, false
	}
	if own, ok := b.guardTier(); ok && b.eligible&(1<<own) != 0 {
		return b.tiers[own].first(), true
	}
	for mask := b.eligible; mask != 0; {
		highest := bits.Len8(mask) - 1
		if running < b.caps[highest] {
			return b.tiers[highest].first(), false
		}
		mask &^= 1 << highest
	}
	return nil, false
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
	k := e.line.key
	b.tiers[e.line.tier].pass(e)
	if k != nil {
		k.running++ // first, or unlink forgets a key with nothing left
	}
	b.unlink(e, true)
	b.endTurn()
	if b.atLimit(k) {
		b.setAside(k)
	}
}

// Pass ends a turn in which a finish could start nothing because of the caps.
// A turn of the guard whose entry waits for enough free slots is not over and
// stays.
func (b *Backlog[T]) Pass(running int) {
	if b.eligible == 0 || running >= b.max {
		return
	}
	if _, guard := b.next(running); !guard {
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
	b.unlink(e, false)
	return true
}

// Admits reports whether an arrival may start at once, without being queued:
// the running total is below its tier's cap, the slots it needs are free, its
// key has room and nothing in its tier goes before it.
func (b *Backlog[T]) Admits(tier int, key string, weight, running int) bool {
	if running >= b.caps[tier] || running+weight > b.max || b.Closed(running)&(1<<tier) != 0 {
		return false
	}
	return key == "" || !b.atLimit(b.keys[key])
}

// Admit counts an arrival that Admits let through, so that its key is charged.
// It is no turn: an arrival that nobody waits for takes nobody's place.
func (b *Backlog[T]) Admit(key string) {
	if key == "" {
		return
	}
	k := b.keyRecord(key)
	k.running++
	if b.atLimit(k) {
		b.setAside(k)
	}
}

// Closed returns a bit for each tier whose arrivals must queue, when running
// slots are in use: something eligible waits in the tier, or an entry of this
// or a higher tier has been chosen and waits for slots to come free.
func (b *Backlog[T]) Closed(running int) uint8 {
	e, guard := b.next(running)
	switch {
	case e == nil || running+int(e.weight) <= b.max:
		return b.eligible
	case guard:
		return 1<<Tiers - 1
	default:
		return b.eligible | (1<<(e.line.tier+1) - 1)
	}
}

// Len is the number of queued entries.
func (b *Backlog[T]) Len() int { return b.queued }

// LenTier is the number of entries queued in a tier.
func (b *Backlog[T]) LenTier(tier int) int { return b.tiers[tier].queued }

// Limits returns the maximum and the caps in force.
func (b *Backlog[T]) Limits() (maximum int, caps [Tiers]int) { return b.max, b.caps }

// SetMax changes the maximum; caps are resolved again.
func (b *Backlog[T]) SetMax(maximum int) {
	b.max, b.caps = maximum, Resolve(maximum, b.set)
}

// SetCaps changes the caps.
func (b *Backlog[T]) SetCaps(set [Tiers]int) {
	b.set, b.caps = set, Resolve(b.max, set)
}

// unlink takes e out of its line and gives the line its new place.
func (b *Backlog[T]) unlink(e *Entry[T], started bool) {
	l := e.line
	t := &b.tiers[l.tier]
	first := e == l.head
	l.remove(e, started)
	t.queued--
	b.queued--
	if first {
		t.settle(l)
		b.expire(t)
		b.mark(l.tier)
	}
}

// enter puts a line into its tier's order.
func (b *Backlog[T]) enter(l *line[T]) {
	b.tiers[l.tier].enter(l)
	b.eligible |= 1 << l.tier
}

// mark notes whether a tier has anything eligible, after its order has shrunk.
func (b *Backlog[T]) mark(tier int8) {
	if len(b.tiers[tier].order) == 0 {
		b.eligible &^= 1 << tier
	}
}

// Overtakers returns the tiers of a mask in which an arrival without a key
// might start before e, which Peek has returned; if e is nil, all in which one
// might start at all. An arrival that goes behind others of its kind is not the
// next to start.
func (b *Backlog[T]) Overtakers(mask uint8, e *Entry[T]) (tiers uint8) {
	for rest := mask; rest != 0; rest &= rest - 1 {
		if tier := bits.TrailingZeros8(rest); b.tiers[tier].plain.n > 0 {
			mask &^= 1 << tier
		}
	}
	if e == nil {
		return mask
	}
	tiers = mask &^ (1<<(e.line.tier+1) - 1)
	if e.line.key != nil {
		tiers |= mask & (1 << e.line.tier)
	}
	if own, ok := b.guardTier(); ok {
		tiers |= mask &^ b.eligible & (1 << own)
	}
	return tiers
}
