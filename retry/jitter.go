package retry

import (
	"math/bits"
	"strconv"
	"time"
)

// Jitter is how a delay is made random, so that callers that fail together do
// not come back together. The kinds are those of Marc Brooker, "Exponential
// Backoff And Jitter", AWS Architecture Blog, 2015. The zero value is [None].
type Jitter int8

// The kinds of jitter, where d is the delay that grows by the policy's factor.
const (
	// None: d itself.
	None Jitter = iota
	// Full: between 0 and d.
	Full
	// Equal: between d/2 and d.
	Equal
	// Decorrelated: between the base and Factor+1 times the delay before (the
	// base, where there was none), and at most Max. The default factor of 2
	// makes that the article's 3. Each caller's delays grow from its own last
	// one and not with the number of the attempt, so callers that failed
	// together drift apart, and none comes back sooner than the base.
	Decorrelated
)

// jitterNames is what Parse reads and String writes.
var jitterNames = [...]string{None: "none", Full: "full", Equal: "equal", Decorrelated: "decorrelated"}

// String returns the kind's name, or jitter(n) for a value that is not a kind.
func (j Jitter) String() string {
	if !j.valid() {
		return "jitter(" + strconv.Itoa(int(j)) + ")"
	}
	return jitterNames[j]
}

func (j Jitter) valid() bool { return j >= 0 && int(j) < len(jitterNames) }

// parseJitter reads a kind's name.
func parseJitter(name string) (Jitter, bool) {
	for j, known := range jitterNames {
		if name == known {
			return Jitter(j), true
		}
	}
	return None, false
}

// between returns a duration from low to high, both included. Each is equally
// likely up to an error of (high-low)/2⁶⁴, for which drawing again, as an exact
// method must, is not worth it.
func between(low, high time.Duration, random func() uint64) time.Duration {
	if high <= low {
		return low
	}
	if random == nil {
		panic("retry: a policy with jitter needs a source of random bits, such as math/rand/v2.Uint64")
	}
	n, _ := bits.Mul64(random(), uint64(high-low)+1)
	return low + time.Duration(n)
}
