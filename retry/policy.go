package retry

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// The defaults of a Policy's unset fields.
const (
	DefaultAttempts = 3
	DefaultBase     = 200 * time.Millisecond
	DefaultFactor   = 2.0
	DefaultMax      = 30 * time.Second
)

// ErrPolicy is wrapped by the errors for invalid policies.
var ErrPolicy = errors.New("retry: invalid policy")

// Policy says how often a function that fails is tried, and after which delays.
// A field that is 0 is unset and has its default; so the zero Policy is three
// attempts with delays of 200 ms and 400 ms. A Policy can be compared, copied,
// used from many goroutines, and written as text (see [Parse]).
//
// In text, a 0 is an error and does not mean unset; for numbers from flags and
// requests see [Policy.WithAttempts].
type Policy struct {
	// Attempts is how often the function is called at most, the first time
	// included. Unset is 3.
	Attempts int
	// Base is the first delay. Unset is 200 ms, or Max if that is shorter. For
	// practically no delay use 1 ns.
	Base time.Duration
	// Factor is the ratio of each delay to the one before it, at least 1, with
	// which all delays are the same. Unset is 2.
	Factor float64
	// Max is the longest delay. Unset is 30 s, or Base if that is longer.
	Max time.Duration
	// Jitter is how the delays are made random. Unset is None.
	Jitter Jitter
}

// TaskPolicy is the policy of a durable task that has no policy of its own: three
// attempts from 200 ms as in the zero Policy, but with [Decorrelated] jitter,
// because the tasks of a queue fail together when what they need is down.
func TaskPolicy() Policy { return Policy{Jitter: Decorrelated} }

// WithAttempts returns p with n attempts. It is for a number from outside, such
// as a flag or a request, where 0 does not mean unset: for an n below 1 it returns
// an error that wraps [ErrPolicy].
func (p Policy) WithAttempts(n int) (Policy, error) {
	if n < 1 {
		return p, fmt.Errorf("%w: attempts %d is below 1", ErrPolicy, n)
	}
	p.Attempts = n
	return p, nil
}

// Validate returns nil, or an error that wraps [ErrPolicy] and names every
// problem that p has.
func (p Policy) Validate() error {
	if problems := p.problems(); len(problems) > 0 {
		return fmt.Errorf("%w: %s", ErrPolicy, strings.Join(problems, "; "))
	}
	return nil
}

func (p Policy) problems() (found []string) {
	if p.Attempts < 0 {
		found = append(found, fmt.Sprintf("attempts %d is below 1", p.Attempts))
	}
	if p.Base < 0 {
		found = append(found, fmt.Sprintf("base %v is negative", p.Base))
	}
	if p.Max < 0 {
		found = append(found, fmt.Sprintf("max %v is negative", p.Max))
	}
	if p.Max > 0 && p.Base > p.Max {
		found = append(found, fmt.Sprintf("base %v is above max %v", p.Base, p.Max))
	}
	if p.Factor != 0 && !(p.Factor >= 1 && p.Factor <= math.MaxFloat64) { // written so that NaN is one
		found = append(found, fmt.Sprintf("factor %v is not a number from 1 up", p.Factor))
	}
	if !p.Jitter.valid() {
		found = append(found, fmt.Sprintf("%v is unknown", p.Jitter))
	}
	return found
}

// Next says what follows the failure of an attempt, of which the first is 1: the
// delay from then to the next attempt, or false if there is none. previous is
// the delay that Next gave before this attempt, and 0 before the first; only
// [Decorrelated] looks at it. random gives 64 random bits and is called once at
// most; it may be nil for a policy without jitter.
//
// Next is pure except for random. The delay is from 0 to p's Max whatever the
// attempt, so no number of attempts overflows. A policy that Validate refuses
// has no next attempt.
func (p Policy) Next(attempt int, previous time.Duration, random func() uint64) (delay time.Duration, ok bool) {
	if len(p.problems()) > 0 {
		return 0, false
	}
	p = p.withDefaults()
	if attempt >= p.Attempts {
		return 0, false
	}
	switch grown := p.grown(attempt); p.Jitter {
	case Full:
		return between(0, grown, random), true
	case Equal:
		return between(grown/2, grown, random), true
	case Decorrelated:
		high := scale(max(previous, p.Base), p.Factor+1)
		return min(between(p.Base, high, random), p.Max), true
	default:
		return grown, true
	}
}

// grown is the delay after an attempt, before jitter.
func (p Policy) grown(attempt int) time.Duration {
	return min(scale(p.Base, math.Pow(p.Factor, float64(max(attempt, 1)-1))), p.Max)
}

// scale multiplies, and stays at the longest duration where that overflows.
// Below 2⁵³ ns, which is 104 days, whole factors give exact products.
func scale(d time.Duration, factor float64) time.Duration {
	if product := float64(d) * factor; product < math.MaxInt64 {
		return time.Duration(product)
	}
	return math.MaxInt64
}

// withDefaults sets what is unset.
func (p Policy) withDefaults() Policy {
	if p.Attempts == 0 {
		p.Attempts = DefaultAttempts
	}
	if p.Factor == 0 {
		p.Factor = DefaultFactor
	}
	if p.Max == 0 {
		p.Max = max(DefaultMax, p.Base)
	}
	if p.Base == 0 {
		p.Base = min(DefaultBase, p.Max)
	}
	return p
}
