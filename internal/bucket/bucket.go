// Package bucket is the policy of a token bucket with priorities: which caller may take
// tokens now, which waits, which goes next and when. It reads no clock and starts
// no goroutine. Every operation is given the time, so that a run can be
// repeated and checked against exact arithmetic.
//
// The bucket is virtual scheduling (the generic cell rate algorithm, ITU-T
// I.371), turned from time into tokens. Two counts that only grow describe it:
// the tokens earned since the beginning, which is a [curve] over time, and the
// tokens spent. What it holds is the difference, and an idle bucket that would
// hold more than its capacity raises the count spent. Tokens are integers, so
// nothing drifts however small the rate or the amount. And because the count
// spent is never set from a time, a caller that read the clock early and
// arrives late cannot take a token twice: it only sees fewer tokens earned.
package bucket

import "math/bits"

// Tiers is the number of priorities. Tier 0 is the lowest.
const Tiers = 7

// Times in nanoseconds.
const (
	// GuardAfter is how long a tier waits behind higher ones, without any
	// progress, before it is admitted into debt.
	GuardAfter = second

	// DebtLasts bounds the time in which a debt is repaid, unless the
	// capacity alone takes longer.
	DebtLasts = 10 * second

	// LateMax bounds the lateness of a wake that is made up for. An idle
	// process is woken a millisecond late or so, and a busy one as late as
	// the goroutine on its processor is preempted, which is 10 ms.
	LateMax = 10_000_000

	// CreditLife is how long after a late wake the tokens that were earned
	// by then are kept past the capacity: time enough for the one that was
	// woken to come back for them.
	CreditLife = 10_000_000
)

// Verdict is the answer of [Bucket.Take].
type Verdict uint8

// The verdicts.
const (
	// Taken: the tokens have been taken.
	Taken Verdict = iota
	// Short: the bucket holds too few.
	Short
	// Queued: an entry waits, and goes first; or the bucket has a source.
	Queued
	// Changing: the rate is being changed. The answer is known once the
	// caller has held the lock.
	Changing
)

// Bucket is a token bucket and the queue of entries that wait for it. The zero
// value has to be started with [Bucket.Init]. [Bucket.Look], [Bucket.Claim] and
// [Bucket.Take] may be called at any time from any goroutine. All other methods
// need the same lock, and times that never run backwards from one to the next.
type Bucket struct {
	account

	// All below is guarded by the caller's lock.

	tiers    [Tiers]tier
	occupied uint8 // a bit for each tier in which an entry waits
	queued   int
	last     int64 // when the queue was last looked at
	headDue  int64 // when the first in line will have its tokens
	guardDue int64 // when the guard will admit an entry, if nothing happens before
	granted  list
	source   Source // nil if all tokens are the bucket's own
	keyed    bool   // the bucket of a key, see [Keys]
	rivals   rivals
}

// Init makes b a full bucket, at a rate within [MinRate] and [MaxRate] tokens a
// second, with a capacity from 1 to [MaxCapacity] tokens, as of time 0.
func (b *Bucket) Init(rate float64, capacity int64) {
	full := newCurve(rate, capacity)
	full.base = capacity
	b.open(full, 0)
}

// Queued returns how many wait in a tier.
func (b *Bucket) Queued(t int) int { return b.tiers[t].count }

// Set ends a change of rate and capacity that [Bucket.Freeze] began. What the
// bucket holds stays as it is, but for what overflows a smaller capacity.
func (b *Bucket) Set(now int64, rate float64, capacity int64) {
	b.Advance(now)
	b.settle(now)
	next := newCurve(rate, capacity)
	next.follow(b.current, now)
	b.adopt(now, next)
}

// adopt puts another curve in place, of which the tokens earned by now are those of the
// current one.
func (b *Bucket) adopt(now int64, next *curve) {
	b.current = next
	b.Advance(now)
	b.curve.Store(next)
}

// top returns the highest tier in which an entry waits. There must be one.
func (b *Bucket) top() int { return bits.Len8(b.occupied) - 1 }
