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
	seen := b.look(now)
	b.age(now, seen.until > now)
	b.rivals = seen
	b.makeUp(now)
	b.clamp(now)
	earned := b.current.earned(now)
	for b.occupied != 0 {
		top := b.top()
		switch holds := earned - b.spent; {
		case holds < b.tiers[top].head.need:
			b.rivals.again = 0
			b.overflow(&b.tiers[top], holds-b.current.capacity)
		case b.drawHead(now, top):
			b.grant(top)
			continue
		default:
			b.hold(&b.tiers[top], holds-b.current.capacity)
		}
		if earned < b.spent || !b.guard(now) {
			break
		}
	}
	b.plan(now)
}

// drawHead is draw for the first in line.
func (b *Bucket) drawHead(now int64, t int) (ok bool) {
	ok, b.rivals.again = b.draw(now, t, false)
	return ok
}

// guard gives the head of the tier that has been passed over for longest the tokens that
// it needs, up to the largest debt, if that is due, and reports whether it did.
func (b *Bucket) guard(now int64) (ok bool) {
	t := b.passedOver()
	if t < 0 {
		return false
	}
	if ok, b.rivals.debt = b.draw(now, t, true); !ok {
		return false
	}
	head := b.tiers[t].head
	part := min(head.need, MaxDebt(b.Rate()))
	b.tiers[t].pay(part)
	b.tiers[t].behind = 0
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

// grant admits the head of a tier and the entries behind it that need no tokens.
func (b *Bucket) grant(t int) {
	b.admit(t)
	b.admitFree(t)
}

// admitFree admits the entries at the head of a tier that need no tokens.
func (b *Bucket) admitFree(t int) {
	for b.tiers[t].count > 0 && b.tiers[t].head.need+b.tiers[t].head.owed == 0 {
		b.admit(t)
	}
}

func (b *Bucket) admit(t int) {
	e := b.tiers[t].head
	b.tiers[t].behind = 0
	b.dequeue(e)
	b.spend(e.need)
	e.need = 0
	e.place = inGranted
	b.granted.push(e)
}

// overflow gives the tokens that the bucket cannot hold to the head of a tier.
func (b *Bucket) overflow(t *tier, excess int64) {
	if excess <= 0 {
		return
	}
	t.pay(excess)
	t.behind = 0
	b.spend(excess)
}

// pay counts n tokens that the head has received.
func (t *tier) pay(n int64) {
	t.head.need -= n
	t.need.add(-n)
}

// hold gives the tokens that the bucket cannot hold to the head, which waits for the
// source. Tokens beyond the head's need are lost.
func (b *Bucket) hold(t *tier, excess int64) {
	if excess <= 0 {
		return
	}
	t.pay(min(excess, t.head.need))
	b.spend(excess)
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
	if b.queued == 0 || now < b.headDue || b.source != nil {
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
	earned, late := b.current.earned(now), int64(0)
	if now > b.headDue {
		late = earned - b.current.earned(max(b.headDue, now-LateMax))
	}
	excess := earned - b.spent - b.current.capacity - late
	if excess <= 0 {
		return
	}
	t := &b.tiers[b.top()]
	if beyond := t.head.need - b.current.capacity; beyond > 0 {
		t.pay(min(excess, beyond))
		t.behind = 0
	}
	b.spend(excess)
}

// age adds the time since the queue was last looked at to the tiers that were
// passed over meanwhile, except for the time in which a debt was repaid. The time at
// which the source went into debt is not known: if it is in debt now, none of the time
// counts.
func (b *Bucket) age(now int64, indebted bool) {
	from := b.last
	b.last = now
	if b.occupied == 0 {
		return
	}
	passed := max(now-max(b.solvent(from), b.rivals.until), 0)
	if indebted {
		passed = 0
	}
	for t := range b.over() {
		if b.tiers[t].count > 0 {
			b.tiers[t].behind += passed
		}
	}
}

// over returns the tier below which all tiers are passed over: here, and where
// others share the source, if the first in line waits for that.
func (b *Bucket) over() int {
	if b.rivals.again == 0 {
		return b.top()
	}
	return max(b.top(), b.rivals.top)
}

// passedOver returns the tier that has been passed over for longest, if the guard
// has to admit it, or -1. Of several, the highest goes first.
func (b *Bucket) passedOver() int {
	longest, found := int64(GuardAfter), -1
	for t := range b.over() {
		if b.tiers[t].count > 0 && b.tiers[t].behind >= longest {
			longest, found = b.tiers[t].behind, t
		}
	}
	return found
}

// plan sets the times at which something will have to be done.
func (b *Bucket) plan(now int64) {
	b.headDue, b.guardDue = math.MaxInt64, math.MaxInt64
	if b.occupied == 0 {
		return
	}
	top := b.top()
	b.headDue = max(b.current.when(b.spent+min(b.tiers[top].head.need, maxTokens)), b.rivals.again)
	longest := int64(-1)
	for t := range b.over() {
		if b.tiers[t].count > 0 {
			longest = max(longest, b.tiers[t].behind)
		}
	}
	if longest >= 0 {
		// While in debt no tier ages, and no entry is admitted.
		solvent := max(b.solvent(now), b.rivals.until)
		b.guardDue = max(solvent+max(GuardAfter-longest, 0), b.rivals.debt)
	}
}
