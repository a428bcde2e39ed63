package bucket

import (
	"math"
	"sync/atomic"
)

// flagLocked is the sign of an account's word. The other bits are the count of
// tokens spent.
const flagLocked = math.MinInt64

// account has the tokens of a bucket: the tokens earned, which the current curve
// gives, less the tokens spent. While no entry waits, it loses what it would hold
// beyond its capacity and its credit; while one does, the bucket decides which entry
// gets that.
//
// Lock-free and locked callers meet in one atomic word, the tokens spent. While its
// flag is clear, any call may take tokens by compare-and-swap. While it is set, an
// entry waits or the bucket has a source, and only the holder of the lock changes the
// word. Look, Claim and Take may be called at any time from any goroutine, all other
// methods only with the lock; those that change spent only between enter and leave.
type account struct {
	curve  atomic.Pointer[curve] // frozen while the rate is being changed
	credit atomic.Int64          // tokens kept past the capacity, see spill
	until  atomic.Int64          // when they end
	_      [40]byte              // read by all; word is written by all

	word atomic.Int64 // tokens spent, and flagLocked
	_    [56]byte

	// All below is guarded by the lock.

	current *curve // what curve holds between changes
	frozen  curve  // on this curve no call takes anything
	spent   int64  // the word's count, while an entry waits and between enter and leave
	sourced bool   // the bucket has a source: the flag stays set
	awaited bool   // an entry waits
}

// open makes a an account that has spent some tokens on a curve.
func (a *account) open(at *curve, spent int64) {
	a.current = at
	a.frozen.capacity = -1
	a.curve.Store(at)
	if a.sourced {
		spent |= flagLocked
	}
	a.word.Store(spent)
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
func (a *account) Look(now, n int64) (spent int64, enough bool) {
	at, spent := a.curve.Load(), a.word.Load()
	holds := at.earned(now) - spent
	return spent, n <= holds && holds <= at.capacity
}

// Claim takes n tokens if the count of tokens spent is still what [Bucket.Look]
// saw.
func (a *account) Claim(spent, n int64) bool {
	return a.word.CompareAndSwap(spent, spent+n)
}

// Take takes n ≥ 0 tokens if the bucket holds them and no entry waits. A debt is
// no obstacle to taking none. It neither blocks nor allocates.
//
// The clock must have been read before the call. Then a curve that is still in
// place was so at that time, since a change of rate takes it away before it reads
// the clock, and no tokens are counted at a rate that had ended.
func (a *account) Take(now, n int64) Verdict {
	for {
		at := a.curve.Load()
		if at == &a.frozen {
			return Changing
		}
		word := a.word.Load()
		if word&flagLocked != 0 {
			return Queued
		}
		earned, spent := at.earned(now), word
		if earned-spent > at.capacity {
			spent = a.spill(at, now, earned, spent)
		}
		if earned-spent < n && n > 0 {
			return Short
		}
		if a.word.CompareAndSwap(word, spent+n) {
			return Taken
		}
	}
}

// spill returns the count spent once the tokens that overflow the bucket are
// lost: those beyond the capacity and, for a while after a late wake, the
// credit. The common case needs no look at the credit, as nothing overflows. A
// caller may see its amount and its end from two different wakes; neither
// amount exceeds what LateMax earns.
func (a *account) spill(at *curve, now, earned, spent int64) int64 {
	holds := at.capacity
	if now < a.until.Load() {
		holds += a.credit.Load()
	}
	return max(spent, earned-holds)
}

// Tokens returns what the bucket holds: negative in debt.
func (a *account) Tokens(now int64) int64 {
	earned := a.current.earned(now)
	spent := a.word.Load() &^ flagLocked
	if a.awaited {
		return min(earned-spent, a.current.capacity)
	}
	return earned - a.spill(a.current, now, earned, spent)
}

// Rate returns the rate in tokens a second, and the capacity in tokens.
func (a *account) Rate() (tokensPerSecond float64, capacity int64) {
	return a.current.rate, a.current.capacity
}

// FreeAt returns when the bucket will hold n tokens if no call takes any.
func (a *account) FreeAt(now, n int64) int64 {
	missing := max(min(n, maxTokens)-a.Tokens(now), 0)
	return a.current.when(a.current.earned(now) + missing)
}

// Freeze begins a change of rate or capacity: no lock-free caller takes tokens
// until [Bucket.Set] has ended it. The clock is read between the two.
func (a *account) Freeze() { a.curve.Store(&a.frozen) }

// settle subtracts the tokens that have overflowed by now, which would otherwise come
// back with a larger capacity.
func (a *account) settle(now int64) {
	earned := a.current.earned(now)
	for !a.awaited {
		word := a.word.Load()
		spent := a.spill(a.current, now, earned, word&^flagLocked)
		if a.word.CompareAndSwap(word, spent|word&flagLocked) {
			return
		}
	}
}

// enter lets the holder of the lock alone change the word.
func (a *account) enter(now int64) {
	word := a.word.Or(flagLocked)
	a.spent = word &^ flagLocked
	if !a.awaited {
		a.spent = a.spill(a.current, now, a.current.earned(now), a.spent)
	}
}

// leave publishes the count. If no entry waits, it lets callers take tokens again
// without the lock, unless the bucket has a source.
func (a *account) leave(awaited bool) {
	a.awaited = awaited
	word := a.spent
	if awaited || a.sourced {
		word |= flagLocked
	}
	a.word.Store(word)
}

// holds returns what the bucket holds before anything overflows: negative in debt.
func (a *account) holds(now int64) int64 { return a.current.earned(now) - a.spent }

// solvent returns the first time, from on, at which the bucket is not in debt.
func (a *account) solvent(from int64) int64 {
	if a.holds(from) >= 0 {
		return from
	}
	return a.current.when(a.spent)
}

// spend counts n tokens.
func (a *account) spend(n int64) { a.spent = charge(a.spent, n) }

// refund puts n tokens back, up to the capacity; more would allow a burst that the
// capacity forbids.
func (a *account) refund(now, n int64) { a.spent = a.current.refund(now, a.spent, n) }

// keepLate records as credit the tokens that have been earned since the latest grant, whose
// entry was due before now, but no more than [LateMax] earns.
func (a *account) keepLate(now int64) {
	earned := a.current.earned(now)
	a.credit.Store(earned - max(a.spent, a.current.earned(now-LateMax)))
	a.until.Store(now + CreditLife)
	a.spent = a.spill(a.current, now, earned, a.spent)
}
