package bucket

// Waiting is the state of an entry that waits, at one moment.
type Waiting struct {
	Tier  int
	Asked int64 // tokens
	Need  int64 // tokens still to come
	Since int64 // when it came
	// FreeAt is when its tokens and those of all entries before it will have been earned,
	// if no entry arrives ahead of it or gives up. The guard may admit it earlier.
	FreeAt int64
	// AloneAt is when the bucket would hold Need tokens if no entry went first.
	AloneAt int64
	// Key is set if the entry represents the first entry of that key; see [Keys.Queues].
	Key string
}

// Waiting returns the entries that wait, in the order in which they are admitted if no
// entry arrives or gives up and the guard admits none. The bucket must have been advanced
// to now.
func (b *Bucket) Waiting(now int64) []Waiting {
	all := make([]Waiting, 0, b.queued)
	ahead := total{}
	for t := Tiers - 1; t >= 0; t-- {
		for e := b.tiers[t].head; e != nil; e = e.next {
			ahead.add(e.need)
			w := Waiting{
				Tier: t, Asked: e.asked, Need: e.need, Since: e.since,
				FreeAt:  max(b.current.when(charge(b.spent, ahead.bounded())), now),
				AloneAt: b.FreeAt(now, e.need),
			}
			if e.claim != nil {
				w.Key = e.claim.queue.key.name
			}
			all = append(all, w)
		}
	}
	return all
}

// InTurn returns when an entry for n tokens that came to tier t now would be admitted if no
// waiter gave up and the guard admitted none: when the tokens for it and for all that go
// before it have been earned. It does not consider the source.
func (b *Bucket) InTurn(now int64, t int, n int64) int64 {
	b.Advance(now)
	switch {
	case n == 0 && b.tiers[t].count == 0:
		return now
	case b.queued == 0:
		return max(b.FreeAt(now, n), now)
	}
	return max(b.current.when(charge(b.spent, b.ahead(t, n))), now)
}

// Earliest returns when an entry for n tokens that came to tier t now could be admitted at
// the earliest, if no waiter gives up: in its turn, or by the guard. Of the source it
// considers only a debt.
func (b *Bucket) Earliest(now int64, t int, n int64) int64 {
	at := b.InTurn(now, t, n)
	if b.queued == 0 || b.top() <= t {
		return at
	}
	dueIn := int64(GuardAfter)
	if b.tiers[t].count > 0 {
		dueIn = b.guard.dueIn(t)
	}
	return min(at, b.solventAt(now)+dueIn)
}

// VacantAt returns when [Bucket.Take] could take n ≥ 0 tokens at the earliest, if
// no waiter gives up: when all waiters have their tokens and the bucket holds n
// more. It is [Never] for more than the bucket can hold. It does not consider the source.
func (b *Bucket) VacantAt(now, n int64) int64 {
	b.Advance(now)
	switch {
	case n > b.current.capacity:
		return Never
	case b.queued == 0 && n == 0:
		return now
	case b.queued == 0:
		return b.FreeAt(now, n)
	}
	return max(b.current.when(charge(b.spent, b.ahead(0, n))), now)
}
