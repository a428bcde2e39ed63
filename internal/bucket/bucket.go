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

import (
	"math"
	"math/bits"
	"sync/atomic"
)

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

// flagQueued is the sign of the bucket's word. The other bits are the count of
// tokens spent.
const flagQueued = math.MinInt64

// Bucket is a token bucket and the queue of entries that wait for it. The zero
// value has to be started with [Bucket.Init]. [Bucket.Look], [Bucket.Claim] and
// [Bucket.Take] may be called at any time from any goroutine. All other methods
// need the same lock, and times that never run backwards from one to the next.
//
// Lock-free and locked callers meet in one atomic word. While its flag is
// clear, any call may take tokens by compare-and-swap. While it is set, an entry
// waits or the bucket has a source, and only the holder of the lock changes the
// word.
type Bucket struct {
	curve  atomic.Pointer[curve] // frozen while the rate is being changed
	credit atomic.Int64          // tokens kept past the capacity, see spill
	until  atomic.Int64          // when they end
	_      [40]byte              // read by all; word is written by all

	word atomic.Int64 // tokens spent, and flagQueued
	_    [56]byte

	// All below is guarded by the caller's lock.

	current  *curve // what curve holds between changes
	frozen   curve  // on this curve no call takes anything
	tiers    [Tiers]tier
	occupied uint8 // a bit for each tier in which an entry waits
	queued   int
	spent    int64 // while an entry waits: the word's count
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
	b.current = newCurve(rate, capacity)
	b.current.base = capacity
	b.frozen.capacity = -1
	b.curve.Store(b.current)
}

// Look and Claim are the common case of [Bucket.Take], in two halves that are
// small enough to be compiled into their caller. Look reports whether n ≥ 0
// tokens are there for the taking, with no entry waiting and nothing to spill.
// Then Claim takes them, unless another call came between. Where either says no,
// Take finds out.
//
// A bucket for which an entry waits seems to be empty or to hold more than it
// can, because of the flag's place; so does one that is frozen, for which no
// amount is both at least 0 and at most its capacity.
func (b *Bucket) Look(now, n int64) (spent int64, enough bool) {
	at, spent := b.curve.Load(), b.word.Load()
	holds := at.earned(now) - spent
	return spent, n <= holds && holds <= at.capacity
}

// Claim takes n tokens if the count of tokens spent is still what [Bucket.Look]
// saw.
func (b *Bucket) Claim(spent, n int64) bool {
	return b.word.CompareAndSwap(spent, spent+n)
}

// Take takes n ≥ 0 tokens if the bucket holds them and no entry waits. A debt is
// no obstacle to taking none. It neither blocks nor allocates.
//
// The clock must have been read before the call. Then a curve that is still in
// place was so at that time, since a change of rate takes it away before it reads
// the clock, and no tokens are counted at a rate that had ended.
func (b *Bucket) Take(now, n int64) Verdict {
	for {
		at := b.curve.Load()
		if at == &b.frozen {
			return Changing
		}
		word := b.word.Load()
		if word&flagQueued != 0 {
			return Queued
		}
		earned, spent := at.earned(now), word
		if earned-spent > at.capacity {
			spent = b.spill(at, now, earned, spent)
		}
		if earned-spent < n && n > 0 {
			return Short
		}
		if b.word.CompareAndSwap(word, spent+n) {
			return Taken
		}
	}
}

// spill returns the count spent once the tokens that overflow the bucket are
// lost: those beyond the capacity and, for a while after a late wake, the
// credit. The common case needs no look at the credit, as nothing overflows. A
// caller may see its amount and its end from two different wakes; neither
// amount exceeds what LateMax earns.
func (b *Bucket) spill(at *curve, now, earned, spent int64) int64 {
	holds := at.capacity
	if now < b.until.Load() {
		holds += b.credit.Load()
	}
	return max(spent, earned-holds)
}

// Tokens returns what the bucket holds: negative in debt.
func (b *Bucket) Tokens(now int64) int64 {
	earned := b.current.earned(now)
	spent := b.word.Load() &^ flagQueued
	if b.queued > 0 {
		return min(earned-spent, b.current.capacity)
	}
	return earned - b.spill(b.current, now, earned, spent)
}

// Rate returns the rate in tokens a second, and the capacity in tokens.
func (b *Bucket) Rate() (tokensPerSecond float64, capacity int64) {
	return b.current.rate, b.current.capacity
}

// FreeAt returns when the bucket will hold n tokens if no call takes any.
func (b *Bucket) FreeAt(now, n int64) int64 {
	missing := max(min(n, maxTokens)-b.Tokens(now), 0)
	return b.current.when(b.current.earned(now) + missing)
}

// Queued returns how many wait in a tier.
func (b *Bucket) Queued(t int) int { return b.tiers[t].count }

// Freeze begins a change of rate or capacity: no lock-free caller takes tokens
// until [Bucket.Set] has ended it. The clock is read between the two.
func (b *Bucket) Freeze() { b.curve.Store(&b.frozen) }

// Set ends a change of rate and capacity that [Bucket.Freeze] began. What the
// bucket holds stays as it is, but for what overflows a smaller capacity.
func (b *Bucket) Set(now int64, rate float64, capacity int64) {
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

// settle accounts for everything up to now at the rate that held until now. In
// an idle bucket that is the overflow, which would otherwise come back with a
// larger capacity.
func (b *Bucket) settle(now int64) {
	b.Advance(now)
	earned := b.current.earned(now)
	for b.queued == 0 {
		word := b.word.Load()
		spent := b.spill(b.current, now, earned, word&^flagQueued)
		if b.word.CompareAndSwap(word, spent|word&flagQueued) {
			return
		}
	}
}

// enter lets the holder of the lock alone change the word.
func (b *Bucket) enter(now int64) {
	word := b.word.Or(flagQueued)
	b.spent = word &^ flagQueued
	if b.queued == 0 {
		b.spent = b.spill(b.current, now, b.current.earned(now), b.spent)
	}
}

// leave publishes the count, and lets callers take tokens again without the lock if none
// waits.
func (b *Bucket) leave() {
	word := b.spent
	if b.queued > 0 || b.source != nil {
		word |= flagQueued
	}
	b.word.Store(word)
}

// spend counts n tokens. A debt of more than can be counted is as good as one
// that never ends.
func (b *Bucket) spend(n int64) {
	b.spent += min(n, max(maxTokens-b.spent, 0))
}

// top returns the highest tier in which an entry waits. There must be one.
func (b *Bucket) top() int { return bits.Len8(b.occupied) - 1 }
