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
//
// A [Bucket] consists of its account (the two counts), its waiters (a queue for each
// tier), its guard (for how long each tier has been passed over) and its supply (a
// second source of tokens). None of these calls another; drain.go decides with
// them which entry gets which tokens. [Keys] has the counts of keys in a table, and
// for each key that an entry waits for a keyQueue: a bucket whose source is the
// bucket that all keys share.
package bucket

// The files:
//
//   - bucket.go: Bucket: its entries arrive, are removed, and are admitted by time
//   - account.go: the counts of tokens earned and spent; what Take does without the lock
//   - curve.go: the tokens earned as a function of time
//   - waiters.go: the entries that wait, by tier, and those that are granted
//   - guard.go: for how long each tier has been passed over
//   - source.go: a second source of tokens: the rate of other processes, or the bucket of all keys
//   - drain.go: decides which entry gets which tokens
//   - waiting.go: when entries are admitted, if nothing changes
//   - meter.go: Meter, the arithmetic alone, for a bucket that processes share
//   - keys.go: Keys, a limiter with a rate for each key
//   - key_table.go: the counts of tokens spent of all keys
//   - key_queue.go: the bucket of a key for which an entry waits
//   - keys_explain.go: when entries of keys are admitted

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
	// by then are kept past the capacity, so that the woken
	// waiter can still take them.
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

	// All below, and most of account, is guarded by the caller's lock.

	waiters
	guard    guard
	supply   supply
	headDue  int64 // when the first entry will have its tokens
	guardDue int64 // when the guard will admit an entry, if nothing happens before
	keyed    bool  // the bucket of a key, see [Keys]
}

// Init makes b a full bucket, at a rate within [MinRate] and [MaxRate] tokens a
// second, with a capacity from 1 to [MaxCapacity] tokens, as of time 0.
func (b *Bucket) Init(rate float64, capacity int64) {
	full := newCurve(rate, capacity)
	full.base = capacity
	b.open(full, 0)
}

// Share makes b take all tokens from source as well. It is called before all other
// methods except [Bucket.Init]. From then on all takers need the lock: [Bucket.Take]
// returns [Queued].
func (b *Bucket) Share(source Source) {
	b.supply.source, b.sourced = source, true
	b.word.Or(flagLocked)
}

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

// TakeShared is [Bucket.Take] for a bucket with a source. It needs the lock.
func (b *Bucket) TakeShared(now, n int64) bool {
	b.enter(now)
	defer b.leave(b.queued > 0)
	if b.queued > 0 || b.holds(now) < n && n > 0 || !b.supply.take(n) {
		return false
	}
	b.spend(n)
	return true
}

// Push queues e for n ≥ 0 tokens at the end of tier t. It may be granted at
// once, see [Bucket.Granted].
func (b *Bucket) Push(now int64, e *Entry, t int, n int64) {
	b.begin(now)
	e.tier, e.asked, e.need, e.owed, e.since, e.Err = t, n, n, 0, now, nil
	if b.sourced {
		e.owed = n
	}
	if b.push(e) {
		b.guard.served(t)
		b.grantFree(t)
	}
	b.end(now)
}

// Remove removes e, whose caller gives up, and puts back the tokens that it has so
// far, up to a full bucket: all of its tokens if it has been granted meanwhile.
func (b *Bucket) Remove(now int64, e *Entry) {
	b.begin(now)
	b.drop(e)
	b.grantFree(e.tier)
	b.putBack(now, e.asked-e.need, e.asked-e.owed)
	b.end(now)
}

// restore puts back n tokens that were taken, up to a full bucket.
func (b *Bucket) restore(now, n int64) {
	b.begin(now)
	b.putBack(now, n, n)
	b.end(now)
}

// Advance grants what can be granted by now.
func (b *Bucket) Advance(now int64) {
	if b.queued == 0 {
		return
	}
	b.enter(now)
	b.end(now)
}

// begin and end are around every change of the queue.
func (b *Bucket) begin(now int64) {
	b.enter(now)
	b.advance(now)
}

func (b *Bucket) end(now int64) {
	b.advance(now)
	b.leave(b.queued > 0)
}

// Next returns when [Bucket.Advance] must be called next, if nothing else happens
// before; ok is false if no entry waits and no call is needed.
func (b *Bucket) Next() (due int64, ok bool) {
	return min(b.headDue, b.guardDue), b.queued > 0
}

// First returns what waits for the source: the highest tier, how many tokens its
// first entry still needs, and the number of waiting entries of all tiers. It returns
// zeros while the first entry waits for the bucket's own tokens.
func (b *Bucket) First() (t int, n int64, queued int) {
	if b.occupied == 0 || b.supply.again == 0 {
		return 0, 0, 0
	}
	t = b.top()
	return t, b.tiers[t].head.owed, b.queued
}
