package stint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/internal/bucket"
)

// LimiterConfig is what a [Limiter] may be told besides its rate. The zero
// value is a good default.
type LimiterConfig struct {
	// Capacity is how many tokens an idle limiter saves up, and so the
	// largest burst. 0 means one second's worth of the rate, at least 1, also
	// when the rate is changed.
	Capacity int64
	// Bucket is where the tokens come from when the rate is shared with other
	// processes or hosts. Nil keeps them in the limiter. The limiter's own rate
	// and capacity apply on top; a rate of 0 is none of its own then.
	Bucket Bucket
}

// Validate reports everything that is wrong with a limiter of this rate and
// configuration, or nil.
func (c LimiterConfig) Validate(rate float64) error {
	var problems []error
	none := c.Bucket != nil && rate == 0
	if err := bucket.ValidateRate(rate); err != nil && !none {
		problems = append(problems, fmt.Errorf("stint: %w", err))
	}
	if none && c.Capacity != 0 {
		problems = append(problems, fmt.Errorf("stint: capacity %d without a rate of its own", c.Capacity))
	}
	if c.Capacity < 0 || c.Capacity > bucket.MaxCapacity {
		problems = append(problems, fmt.Errorf("stint: capacity %d is outside 0 (one second's worth) to %d tokens",
			c.Capacity, int64(bucket.MaxCapacity)))
	}
	return errors.Join(problems...)
}

// tokens returns the capacity that the configuration means at a rate.
func (c LimiterConfig) tokens(rate float64) int64 {
	if c.Capacity > 0 {
		return c.Capacity
	}
	return max(int64(rate), 1)
}

// Limiter admits a rate of tokens per second: of requests, bytes, or whatever
// a token is to its callers. It is a token bucket with seven tiers. A caller of
// a higher tier goes before all of lower tiers, those of a tier go in the order
// in which they came, and a tier that has been passed over for a second is
// admitted into debt: its first in line gets its tokens at once, and nobody
// else gets any until they have been earned.
//
// It is a small value, like a [Scheduler]: copies share the same bucket, and At
// returns a copy that asks for tokens at a tier. It costs nothing. The methods
// of the zero Limiter panic; make one with [NewLimiter].
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
// nobody waits, taking tokens is one compare-and-swap (and a lock, if they are
// shared: see [LimiterConfig]), and the limiter keeps no goroutine and no timer.
// It needs no closing. It can count 2⁶¹ tokens, which are 34 years of two thousand
// million per second.
type Limiter struct {
	c      *limiter
	tier   Priority
	tiered bool // tier was set by At; otherwise it comes from the context
}

// NewLimiter returns a limiter of rate tokens per second, from 1e-6 to 2³⁴, or of
// none of its own if it has a shared bucket and rate is 0. It panics if
// [LimiterConfig.Validate] reports a problem.
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

func (l Limiter) tierFor(ctx context.Context) Priority {
	if l.tiered {
		return l.tier
	}
	return PriorityFrom(ctx)
}

// Try takes n tokens if the bucket holds them and nobody waits, of whatever
// tier, and reports whether it did. It never blocks, and it takes nothing if it
// returns false. A negative n is refused.
func (l Limiter) Try(n int64) bool {
	now := l.c.made().now()
	if spent, enough := l.c.bucket.Look(now, n); enough && n >= 0 && l.c.bucket.Claim(spent, n) {
		return true
	}
	return n >= 0 && l.c.try(now, n)
}

// TryAfter is Try, and if that takes nothing, after says how long it takes at the
// least until it may succeed: until all who wait have their tokens and the bucket holds
// n, if nobody else comes and nobody gives up. It is at least 1 ns, and [Never] for
// what Try never takes: a negative n, or more than the capacity. It is what a server
// that refuses a request says in Retry-After, rounded up to seconds.
func (l Limiter) TryAfter(n int64) (after time.Duration, ok bool) {
	if l.Try(n) {
		return 0, true
	}
	return l.c.vacant(n), false
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
	if done, err := l.c.enter(ctx, n); done {
		return err
	}
	_, err := l.c.wait(ctx, nil, l.tierFor(ctx), n, n)
	return err
}

// Delay returns how long a caller who waited for n tokens from now on would wait
// at the least, at the tier of [Limiter.At] ([Normal] if none): 0 if they are to
// be had at once. It takes nothing. Others that come meanwhile at a higher tier
// make it longer, those who give up shorter. Of tokens that are shared it knows the
// limiter's own rate only. For one who does not wait but comes back, see
// [Limiter.TryAfter].
func (l Limiter) Delay(n int64) time.Duration {
	c := l.c.made()
	if n < 0 {
		return 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.delay(l.tier, n)
}
