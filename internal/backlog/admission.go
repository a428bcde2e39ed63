package backlog

// Admits reports whether an arrival may start at once, without being queued:
// the running total is below its tier's cap, the slots it needs are free, its
// key has room and nothing in its tier goes before it.
func (b *Backlog[T]) Admits(tier int, key string, weight, running int) bool {
	if running >= b.bounds.caps[tier] || weight > b.bounds.max-running || b.Closed(running)&(1<<tier) != 0 {
		return false
	}
	return b.keys.HasRoom(key)
}

// Closed returns a bit for each tier whose arrivals must queue, when running
// slots are in use: something eligible waits in the tier, or an entry of this
// or a higher tier has been chosen and waits for slots to come free.
func (b *Backlog[T]) Closed(running int) uint8 {
	e, guarded := b.next(running, b.order.eligible, b.order.all)
	switch {
	case e == nil || int(e.weight) <= b.bounds.max-running:
		return b.order.eligible
	case guarded:
		return 1<<Tiers - 1
	default:
		return b.order.eligible | (1<<e.queue.tier - 1)
	}
}

// Eligible has a bit for each tier of which something waits that its key does not hold back.
func (b *Backlog[T]) Eligible() uint8 { return b.order.eligible }

// Highest returns the highest tier of which an entry may start when running slots
// are in use, provided that enough slots are free for it, or -1. A turn of the guard
// counts only if nothing else may start: otherwise it affects a single start, and the
// starts after it are of another tier.
func (b *Backlog[T]) Highest(running int) (tier int) {
	if tier = b.bounds.highest(running, b.order.eligible); tier >= 0 {
		return tier
	}
	if e, guarded := b.next(running, b.order.eligible, b.order.all); guarded {
		return e.Tier()
	}
	return -1
}
