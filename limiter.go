package stint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// LimiterConfig configures a [Limiter] beyond its rate. The zero value is a good
// default.
type LimiterConfig struct {
	// Capacity is how many tokens an idle limiter saves up, and so the
	// largest burst. 0 means one second's worth of the rate, at least 1, also
	// when the rate is changed.
	Capacity int64
	// PerKey is the rate of each key in tokens per second, which applies to calls
	// on behalf of a key (see [Limiter.Key]) in addition to the limiter's own
	// rate; 0 is none. With a rate per key, the limiter's own rate may be 0, for none.
	PerKey float64
	// KeyCapacity is how many tokens an idle key saves up. 0 means one second's worth of
	// PerKey, at least 1, also when PerKey is changed.
	KeyCapacity int64
	// Bucket is where the tokens come from when the rate is shared with other
	// processes or hosts. Nil keeps them in the limiter. The limiter's own rate
	// and capacity apply on top; its own rate may be 0 then, for none.
	Bucket Bucket
}

// Validate reports everything that is wrong with a limiter of this rate and
// configuration, or nil.
func (c LimiterConfig) Validate(rate float64) error {
	var problems []error
	none := c.without(rate)
	if err := bucket.ValidateRate(rate); err != nil && !none {
		problems = append(problems, fmt.Errorf("stint: %w", err))
	}
	if err := bucket.ValidateRate(c.PerKey); err != nil && c.PerKey != 0 {
		problems = append(problems, fmt.Errorf("stint: PerKey: %w", err))
	}
	if c.PerKey == 0 && c.KeyCapacity != 0 {
		problems = append(problems, fmt.Errorf(
			"stint: KeyCapacity is %d without a PerKey rate: set PerKey, or leave KeyCapacity out", c.KeyCapacity))
	}
	if none && c.Capacity != 0 {
		problems = append(problems, fmt.Errorf(
			"stint: Capacity is %d, but the limiter has no rate of its own: set a rate, or leave Capacity out", c.Capacity))
	}
	problems = append(problems, validCapacity("capacity", c.Capacity), validCapacity("KeyCapacity", c.KeyCapacity))
	return errors.Join(problems...)
}

func validCapacity(what string, n int64) error {
	if n < 0 || n > bucket.MaxCapacity {
		return fmt.Errorf("stint: %s %d is outside 0 (one second's worth) to %d tokens", what, n, int64(bucket.MaxCapacity))
	}
	return nil
}

// without reports whether the limiter has no rate of its own.
func (c LimiterConfig) without(rate float64) bool {
	return rate == 0 && (c.Bucket != nil || c.PerKey != 0)
}

// used returns c without the capacities that have no effect, since the rates that they belong to
// are 0: a change of a rate to 0 keeps them for later.
func (c LimiterConfig) used(rate float64) LimiterConfig {
	if c.without(rate) {
		c.Capacity = 0
	}
	if c.PerKey == 0 {
		c.KeyCapacity = 0
	}
	return c
}

// own returns the limiter's own rate and capacity: the maximum of both if it has no rate
// of its own.
func (c LimiterConfig) own(rate float64) (tokensPerSecond float64, capacity int64) {
	if c.without(rate) {
		return bucket.MaxRate, bucket.MaxCapacity
	}
	return rate, worth(c.Capacity, rate)
}

// worth returns the capacity, or one second's worth of the rate, at least 1, if the
// capacity is 0.
func worth(capacity int64, rate float64) int64 {
	if capacity > 0 {
		return capacity
	}
	return max(int64(rate), 1)
}

// Limiter admits a rate of tokens per second; a token may stand for a request,
// a byte, or any other unit. It is a token bucket with seven tiers. Callers of a
// higher tier get tokens before callers of lower tiers, and callers of one tier
// in the order of their arrival. A tier that has been passed over for a second is
// admitted into debt: its first caller gets all of its tokens at once, even more than
// the capacity, and no other caller of any tier gets any until these have been earned.
// A debt is at most what the rate earns in 10 s, or the capacity if that is more; a
// caller that asks for more gets it in such parts.
//
// It is a small value, like a [Scheduler]: copies share the same bucket, and At
// and Key return copies that ask for tokens at a tier, or on behalf of a key. They
// cost nothing. The methods of the zero Limiter panic; make one with [NewLimiter].
//
// In any span of time the limiter admits at most its capacity plus the tokens that
// the rate earns meanwhile, with three exceptions: a request for more than the
// capacity, whose tokens accumulate while it waits; a debt, which is paid back;
// and the tokens that are earned while a waiter is woken late (an idle process may
// sleep a millisecond longer than requested), at most 10 ms' worth, which are kept
// beyond the capacity for 10 ms. In its whole life it never admits more than its
// capacity, the tokens that the rate has earned, and one debt.
//
// The bucket is full at first. All methods are safe for concurrent use. While
// no caller waits, taking tokens is one compare-and-swap (and a lock, if they are
// shared: see [LimiterConfig]), and the limiter has no goroutine and no timer.
// It needs no closing. It can count 2⁶¹ tokens, which last for 36 years at two
// billion per second.
//
// # Keys
//
// A key names the tenant, account or address on whose behalf tokens are taken. With
// [LimiterConfig.PerKey] each key has a token bucket of its own, which is full at first and
// has seven tiers and a guard. A caller with a key needs tokens of both buckets, the key's
// and the limiter's: when the key's bucket has the tokens for the key's first caller, that
// caller joins the limiter's queue at the end of its tier. So a key that has used up its
// rate delays no other key, and keys take turns at the rate that they share, however many
// callers each of them has. In any span of time a key gets at most its capacity plus the
// tokens that its rate earns, with the exceptions named above.
//
// Keys need no registration and no removal. The limiter remembers only the keys whose
// bucket is not full, each in about 150 bytes and without a goroutine or timer of its own.
// One timer of the limiter forgets keys that are full again, after about a second (or 4 s
// for each million keys). Forgetting loses nothing: an unknown key has a full bucket.
// Taking tokens of a key takes a lock.
type Limiter struct {
	c      *limiter
	key    string
	tier   Priority
	tiered bool // tier was set by At; otherwise it comes from the context
}

// NewLimiter returns a limiter of rate tokens per second, from 1e-6 to 2³⁴. The rate may be
// 0, for none, if the limiter has a shared bucket or a rate per key. NewLimiter panics
// if [LimiterConfig.Validate] reports a problem.
func NewLimiter(rate float64, cfg LimiterConfig) Limiter {
	if err := cfg.Validate(rate); err != nil {
		panic(err)
	}
	return Limiter{c: newLimiter(rate, cfg)}
}

// At returns the limiter at tier p, whatever the context says. It panics if p is
// not a tier.
func (l Limiter) At(p Priority) Limiter {
	l.c.made()
	l.tier, l.tiered = p.mustValid(), true
	return l
}

// Key returns the limiter for tokens on behalf of key. With an empty key there is no rate
// per key, and each waiting caller has a place of its own in the limiter's queue. Without
// [LimiterConfig.PerKey] keys take turns and have no rate of their own.
func (l Limiter) Key(key string) Limiter {
	l.c.made()
	l.key = key
	return l
}

func (l Limiter) tierFor(ctx context.Context) Priority {
	if l.tiered {
		return l.tier
	}
	return PriorityFrom(ctx)
}

// Try takes n tokens if the bucket holds them, and the key's bucket if there is a key,
// and no caller of any tier waits for either. It reports whether it took them. It never
// blocks, and it takes nothing if it returns false. A negative n is refused.
func (l Limiter) Try(n int64) bool {
	if l.key != "" {
		return n >= 0 && l.c.made().tryKey(l.key, n)
	}
	now := l.c.made().now()
	if spent, enough := l.c.bucket.Look(now, n); enough && n >= 0 && l.c.bucket.Claim(spent, n) {
		return true
	}
	return n >= 0 && l.c.try(now, n)
}

// TryAfter is Try. If it takes nothing, after is the least time until it may succeed:
// until all waiting callers have their tokens and the bucket holds n, if no other caller
// arrives or gives up. It is at least 1 ns, and [Never] if Try never takes n tokens: n is
// negative, or more than the capacity. A server that refuses a request can send it,
// rounded up to seconds, as Retry-After.
func (l Limiter) TryAfter(n int64) (after time.Duration, ok bool) {
	if l.Try(n) {
		return 0, true
	}
	return l.c.vacant(l.key, n), false
}

// Wait takes n tokens as soon as they are available and it is the caller's turn
// at the limiter's tier: that of [Limiter.At], or else the one that ctx carries
// ([Normal] if none).
//
// With n = 0 it does not wait for tokens, only for the callers before it in its
// tier. An n above the capacity is throttled, not refused: its tokens accumulate
// while it waits.
//
// When ctx ends, Wait leaves the queue, puts back the tokens that it has so far,
// and returns the context's cause. It also returns the cause if ctx has already
// ended. If the deadline of ctx is before the time at which the tokens will be
// available, Wait returns a [DeadlineError] at once, unless the tokens are shared.
// For a negative n it returns [ErrNegative].
func (l Limiter) Wait(ctx context.Context, n int64) error {
	if done, err := l.c.enter(ctx, l.key, n); done {
		return err
	}
	_, err := l.c.wait(ctx, nil, l.key, l.tierFor(ctx), n, n)
	return err
}

// Delay returns the least time that a caller of Wait would wait for n tokens from now on,
// at the tier of [Limiter.At] ([Normal] if none): 0 if it would get them at once. It
// takes nothing. Callers that arrive meanwhile at a higher tier make the wait longer,
// callers that give up make it shorter. With shared tokens it considers only the limiter's
// own rate. A caller that retries instead of waiting uses [Limiter.TryAfter].
func (l Limiter) Delay(n int64) time.Duration {
	c := l.c.made()
	if n < 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delay(l.key, l.tier, n)
}
