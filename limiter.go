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
	// on behalf of a key (see [Limiter.Key]), beside the limiter's own
	// rate; 0 is none. A rate of the limiter's own of 0 is none then.
	PerKey float64
	// KeyCapacity is how many tokens an idle key saves up. 0 means one second's worth of
	// PerKey, at least 1, also when that is changed.
	KeyCapacity int64
	// Bucket is where the tokens come from when the rate is shared with other
	// processes or hosts. Nil keeps them in the limiter. The limiter's own rate
	// and capacity apply on top; a rate of 0 is none of its own then.
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
		problems = append(problems, fmt.Errorf("stint: KeyCapacity is %d, and PerKey is 0: set that too", c.KeyCapacity))
	}
	if none && c.Capacity != 0 {
		problems = append(problems, fmt.Errorf("stint: capacity %d without a rate of its own", c.Capacity))
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

// without reports whether a rate means that the limiter has none of its own.
func (c LimiterConfig) without(rate float64) bool {
	return rate == 0 && (c.Bucket != nil || c.PerKey != 0)
}

// own returns the limiter's own rate and capacity, which may be those of none.
func (c LimiterConfig) own(rate float64) (tokensPerSecond float64, capacity int64) {
	if c.without(rate) {
		return bucket.MaxRate, bucket.MaxCapacity
	}
	return rate, worth(c.Capacity, rate)
}

// worth returns a capacity, which is a second's worth of the rate if it is not set.
func worth(capacity int64, rate float64) int64 {
	if capacity > 0 {
		return capacity
	}
	return max(int64(rate), 1)
}

// Limiter admits a rate of tokens per second: of requests, bytes, or whatever
// a token is to its callers. It is a token bucket with seven tiers. A caller of
// a higher tier goes before all of lower tiers, those of a tier go in the order
// in which they came, and a tier that has been passed over for a second is
// admitted into debt: its first in line gets its tokens at once, and no other
// caller gets any until they have been earned.
//
// It is a small value, like a [Scheduler]: copies share the same bucket, and At
// and Key return copies that ask for tokens at a tier, or on behalf of a key. They
// cost nothing. The methods of the zero Limiter panic; make one with [NewLimiter].
//
// In any span of time the limiter admits at most its capacity and what the
// rate earns meanwhile, but for three things that say so: an entry of more than
// the capacity, whose tokens were saved up while it waited; a debt, which is
// paid back; and what was earned while a waiter was woken late (an idle process
// sleeps up to a millisecond longer than it is asked to), up to 10 ms' worth,
// which is kept past the capacity for 10 ms. Since the start it never admits
// more than its capacity and what the rate has earned, and a debt.
//
// The bucket is full at first. All methods are safe for concurrent use. While
// no caller waits, taking tokens is one compare-and-swap (and a lock, if they are
// shared: see [LimiterConfig]), and the limiter keeps no goroutine and no timer.
// It needs no closing. It can count 2⁶¹ tokens, which are 34 years of two thousand
// million per second.
//
// # Keys
//
// A key is on whose behalf tokens are taken: a tenant, an account, an address. With
// [LimiterConfig.PerKey] each key has a token bucket of its own, which is full at first,
// with seven tiers and a guard, and its tokens and the limiter's own have to be had both.
// The first in line of a key whose bucket has its tokens takes its place in the limiter's
// line, at the end of its tier. So a key that has used up its rate keeps no other
// waiting, and keys take turns at the rate that they share, however many wait for each.
// In any span of time a key gets at most its capacity and what its rate earns, with the
// exceptions named above.
//
// Keys need no setting up and no removal. Only keys of which the bucket is not full are
// remembered, and one costs about 150 bytes and neither a goroutine nor a timer; one timer
// of the limiter forgets those that are full again, about a second later (or 4 s for each
// million keys). Forgetting loses nothing, as a key that is not known has a full bucket.
// Taking tokens of a key takes a lock.
type Limiter struct {
	c      *limiter
	key    string
	tier   Priority
	tiered bool // tier was set by At; otherwise it comes from the context
}

// NewLimiter returns a limiter of rate tokens per second, from 1e-6 to 2³⁴, or of
// none of its own if rate is 0 and it has a shared bucket or a rate per key. It panics
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
// per key, and each waiting caller has a place of its own in line. Without
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
// comes or gives up. It is at least 1 ns, and [Never] for what Try never takes: a
// negative n, or more than the capacity. A server that refuses a request can send it,
// rounded up to seconds, as Retry-After.
func (l Limiter) TryAfter(n int64) (after time.Duration, ok bool) {
	if l.Try(n) {
		return 0, true
	}
	return l.c.vacant(l.key, n), false
}

// Wait takes n tokens, as soon as they are there and it is the caller's turn
// at the limiter's tier: that of [Limiter.At], or else the one that ctx carries
// ([Normal] if none).
//
// For n = 0 it never waits for tokens, but for those before it in its tier. An
// n above the capacity is throttled, not refused: the tokens are saved up.
//
// When ctx ends, Wait gives up its place, returns the tokens that it has been
// given so far and answers with the context's cause. A context that has already
// ended is refused, and so is one whose deadline comes before the tokens: with a
// [DeadlineError], at once, unless they are shared. A negative n is answered with
// [ErrNegative].
func (l Limiter) Wait(ctx context.Context, n int64) error {
	if done, err := l.c.enter(ctx, l.key, n); done {
		return err
	}
	_, err := l.c.wait(ctx, nil, l.key, l.tierFor(ctx), n, n)
	return err
}

// Delay returns the least time that a caller of Wait would wait for n tokens from now on,
// at the tier of [Limiter.At] ([Normal] if none): 0 if it would get them at once. It
// takes nothing. Callers that come meanwhile at a higher tier make the wait longer,
// callers that give up shorter. For shared tokens it knows only the limiter's own rate.
// For a caller that does not wait but comes back, see [Limiter.TryAfter].
func (l Limiter) Delay(n int64) time.Duration {
	c := l.c.made()
	if n < 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delay(l.key, l.tier, n)
}
