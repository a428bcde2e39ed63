package backlog

import "slices"

// Reasons says why an entry does not start, or would not if it arrived. They
// come out of the state that admission itself reads.
type Reasons struct {
	Weight   int // slots that the entry needs
	Max      int
	Full     bool // running plus the entry's weight is above Max
	Cap      int
	AtCap    bool   // running has reached the tier's cap
	Key      string // the entry's key, empty for none
	PerKey   int
	AtLimit  bool // as many of the key run as may
	Blocked  bool // the key is blocked; see [Keys.Block]
	KeyRuns  int
	Ahead    [Tiers]int // entries that go first, at most, by tier
	GuardIn  int        // turns until the guard's turn of the entry's tier; 0 is now
	Reserved bool       // an entry that needs several slots holds this one back until it has them
}

// Why explains a queued entry. The cost does not grow with the length of the
// backlog beyond a few thousand steps.
func (b *Backlog[T]) Why(e *Entry[T], running int) Reasons {
	return b.why(e, aheadInQueue(e), int(e.weight), running, b.order.all)
}

// WhyOf is Why, but of the entries that go first it counts only those of some classes, each
// named once: the others are not taken.
func (b *Backlog[T]) WhyOf(e *Entry[T], running int, classes []int) Reasons {
	classes = slices.DeleteFunc(slices.Clone(classes), func(c int) bool { return c >= len(b.order.classes) })
	return b.why(e, aheadInQueue(e), int(e.weight), running, classes)
}

func (b *Backlog[T]) why(e *Entry[T], aheadInQueue, weight, running int, classes []int) Reasons {
	q := e.queue
	r := b.reasons(int(q.tier), q.flow.key, e.Key(), weight, running)
	for higher := int(q.tier) + 1; higher < Tiers; higher++ {
		r.Ahead[higher] = b.order.inTier(higher, classes)
	}
	r.Ahead[q.tier] = b.order.aheadInTier(e, aheadInQueue, classes)
	guard, need := b.guarded()
	r.Reserved = reserved(int(q.tier), guard, need, running, b.bounds.max)
	return r
}

// guarded returns the tier that the guard serves this turn, or -1, and the weight of its first
// entry.
func (b *Backlog[T]) guarded() (tier, weight int) {
	tier, ok := b.guard.tier()
	if !ok || b.order.eligible&(1<<tier) == 0 {
		return -1, 0
	}
	return tier, int(b.order.first(tier, b.order.all).first().weight)
}

// reserved reports whether an entry of a tier waits because the first entry of a lower one, which
// the guard serves, lacks slots. What waits in higher tiers is counted as ahead.
func reserved(tier, guard, need, running, maximum int) bool {
	return guard >= 0 && guard < tier && running < maximum && need > maximum-running
}

// WhyNot explains why an entry that arrived now would not start at once.
func (b *Backlog[T]) WhyNot(tier int, key string, weight, running int) Reasons {
	k := b.keys.known[key]
	r := b.reasons(tier, k, key, weight, running)
	for i := tier; i < Tiers; i++ {
		r.Ahead[i] = b.order.tiers[i].len()
	}
	r.Reserved = b.Closed(running)&(1<<tier) != 0 && b.order.eligible&(1<<tier) == 0
	return r
}

func (b *Backlog[T]) reasons(tier int, k *key[T], key string, weight, running int) Reasons {
	r := Reasons{
		Key: key, Weight: weight,
		Max: b.bounds.max, Full: weight > b.bounds.max-running,
		Cap: b.bounds.caps[tier], AtCap: running >= b.bounds.caps[tier],
		PerKey:  b.keys.Limit(key),
		AtLimit: b.keys.atLimit(k),
		GuardIn: b.guard.in(tier),
	}
	if k != nil {
		r.KeyRuns, r.Blocked = int(k.running), k.blocked != 0
	}
	return r
}
