package bucket

import "math"

// advance grants what can be granted by now: to the highest tier, first in
// first out, as long as the bucket holds what its head needs; then to a tier
// that has been passed over for too long. The caller must own the word: see enter.
//
// Tokens stay in the bucket until they meet the need of the head. So an entry of a
// higher tier that arrives meanwhile finds them, and no entry waits for tokens that
// another one holds. Only tokens that overflow go to the head at once, which then
// needs more than the capacity. So the bucket never holds more than its capacity
// (and the credit of a late wake), and no burst exceeds it, however many entries
// wait and give up.
func (b *Bucket) advance(now int64) {
	b.age(now)
	b.makeUp(now)
	b.clamp(now)
	earned := b.current.earned(now)
	for b.occupied != 0 {
		top := b.top()
		need, holds := b.tiers[top].head.need, earned-b.spent
		excess := holds - b.current.capacity
		switch {
		case holds < need:
			b.supply.again = 0
			if b.overflow(top, excess, need) {
				b.guard.served(top)
			}
		case b.draw(now, top, false):
			b.grant(top)
			continue
		default: // the head waits for the source, and its own tokens do not count as progress
			b.overflow(top, excess, need)
		}
		if earned < b.spent || !b.admitOverdue(now) {
			break
		}
	}
	b.plan(now)
}

// age adds to the guard the time since the last look in which tiers were passed over. Time in which
// a debt was repaid does not count. The time at which the source went into debt is not known: if it is in debt now,
// none of the time counts.
func (b *Bucket) age(now int64) {
	passed, from := b.passedOver(), now
	if passed != 0 {
		from = max(b.solvent(b.guard.last), b.supply.solvent)
	}
	b.supply.look(now)
	if b.supply.solvent > now {
		from = now
	}
	b.guard.age(from, now, passed)
}

// passedOver returns the tiers that wait while a higher one goes first: here, and where
// others share the source, if the first entry waits for the source.
func (b *Bucket) passedOver() (tiers uint8) {
	if b.occupied == 0 {
		return 0
	}
	top := b.top()
	if b.supply.again != 0 {
		top = max(top, b.supply.rival)
	}
	return b.occupied & (1<<top - 1)
}

// makeUp grants the entry that is due, and records as credit the tokens that have
// been earned since then because the wake is late. The credit goes to the waiting
// entries, or stays in the bucket for a while in addition to the capacity: a waiter
// that is woken late was asleep when an idle bucket would have overflowed. Tokens that
// were earned more than LateMax ago are treated as if no entry had waited, so that no
// burst follows a very late wake.
//
// The credit is counted from the token that was due, not from the nanosecond:
// at the highest rates a nanosecond earns several, and those count as well.
func (b *Bucket) makeUp(now int64) {
	if b.occupied == 0 || now < b.headDue || b.sourced {
		return
	}
	b.grant(b.top())
	b.keepLate(now)
}

// clamp is for the bucket of a key while an entry waits, perhaps for the shared bucket.
// Tokens that the key's bucket cannot hold meanwhile are lost, except those that the head
// still needs beyond the capacity. Tokens that are earned while the wake is late, up to
// [LateMax], are kept for the waiting entries.
func (b *Bucket) clamp(now int64) {
	if !b.keyed || b.occupied == 0 {
		return
	}
	late := int64(0)
	if now > b.headDue {
		late = b.current.earned(now) - b.current.earned(max(b.headDue, now-LateMax))
	}
	top, capacity := b.top(), b.current.capacity
	if b.overflow(top, b.holds(now)-capacity-late, b.tiers[top].head.need-capacity) {
		b.guard.served(top)
	}
}

// overflow takes the tokens that the bucket cannot hold, and gives up to most of them to the
// head of a tier. It reports whether that got any.
func (b *Bucket) overflow(t int, excess, most int64) (some bool) {
	if excess <= 0 {
		return false
	}
	b.spend(excess)
	if most <= 0 {
		return false
	}
	b.pay(t, min(excess, most))
	return true
}

// grant admits the head of a tier and the entries behind it that need no tokens.
func (b *Bucket) grant(t int) {
	b.guard.served(t)
	b.spend(b.waiters.grant(t))
	b.grantFree(t)
}

// grantFree admits the entries at the head of a tier that need no tokens.
func (b *Bucket) grantFree(t int) {
	for b.free(t) {
		b.guard.served(t)
		b.waiters.grant(t)
	}
}

// admitOverdue gives the head of the tier that has been passed over for longest the tokens
// that it needs, up to the largest debt, if that is due, and reports whether it did.
func (b *Bucket) admitOverdue(now int64) (ok bool) {
	t := b.guard.overdue(b.passedOver())
	if t < 0 || !b.draw(now, t, true) {
		return false
	}
	head := b.tiers[t].head
	part := min(head.need, MaxDebt(b.Rate()))
	b.guard.served(t)
	b.pay(t, part)
	b.spend(part)
	if head.need == 0 {
		b.grant(t)
	}
	return true
}

// MaxDebt returns the largest debt of a bucket: what it earns in [DebtLasts], or what it
// holds if that is more. An entry for more gets its tokens in parts, so no lower tier stops
// the higher ones for longer, whatever it asks for.
func MaxDebt(rate float64, capacity int64) int64 {
	return max(int64(rate*(DebtLasts/second)), capacity)
}

// draw takes the tokens that the head of a tier needs from the source, and reports whether
// the head has all of them now. After an error it needs none.
func (b *Bucket) draw(now int64, t int, debt bool) (ok bool) {
	e := b.tiers[t].head
	some, err := b.supply.draw(now, e, debt)
	if err != nil {
		b.putBack(now, e.asked-e.need, e.asked-e.owed)
		b.pay(t, e.need)
		e.asked, e.owed, e.Err = 0, 0, err
		return true
	}
	if some {
		b.guard.served(t)
	}
	return e.owed == 0
}

// putBack puts tokens back that were taken of the bucket and of its source.
func (b *Bucket) putBack(now, own, drawn int64) {
	b.refund(now, own)
	if b.sourced && drawn > 0 {
		b.supply.source.Return(drawn)
	}
}

// plan sets the times at which something will have to be done.
func (b *Bucket) plan(now int64) {
	b.headDue, b.guardDue = math.MaxInt64, math.MaxInt64
	if b.occupied == 0 {
		return
	}
	need := b.tiers[b.top()].head.need
	b.headDue = max(b.current.when(b.spent+min(need, maxTokens)), b.supply.again)
	if t := b.guard.longest(b.passedOver()); t >= 0 {
		b.guardDue = max(b.solventAt(now)+b.guard.dueIn(t), b.supply.debtAgain)
	}
}

// solventAt returns the first time, from now on, at which neither the bucket nor its source is in
// debt. Until then no tier ages, and the guard admits no entry.
func (b *Bucket) solventAt(now int64) int64 { return max(b.solvent(now), b.supply.solvent) }
