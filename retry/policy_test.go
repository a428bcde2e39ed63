package retry_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/retry"
)

// The two ends of what a source of random bits gives.
func lowest() uint64  { return 0 }
func highest() uint64 { return math.MaxUint64 }

// TestC2_NextDelays states each kind of jitter by the range that it draws from.
func TestC2_NextDelays(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name      string
		policy    retry.Policy
		attempt   int
		previous  time.Duration
		low, high time.Duration
	}{
		{"doubling, 1st", retry.Policy{}, 1, 0, 200 * ms, 200 * ms},
		{"doubling, before the 1st", retry.Policy{}, 0, 0, 200 * ms, 200 * ms},
		{"doubling, far before", retry.Policy{}, math.MinInt, 0, 200 * ms, 200 * ms},
		{"doubling, 2nd", retry.Policy{}, 2, 200 * ms, 400 * ms, 400 * ms},
		{"doubling, 8th", retry.Policy{Attempts: 9}, 8, 0, 25600 * ms, 25600 * ms},
		{"doubling, at max", retry.Policy{Attempts: 10}, 9, 0, 30_000 * ms, 30_000 * ms},
		{"by 1", retry.Policy{Factor: 1, Attempts: 10}, 9, 0, 200 * ms, 200 * ms},
		{"by 1.5", retry.Policy{Factor: 1.5}, 2, 0, 300 * ms, 300 * ms},
		{"max below the default base", retry.Policy{Max: 50 * ms}, 1, 0, 50 * ms, 50 * ms},
		{"base above the default max", retry.Policy{Base: time.Hour}, 2, 0, time.Hour, time.Hour},
		{"full", retry.Policy{Jitter: retry.Full}, 2, 0, 0, 400 * ms},
		{"equal", retry.Policy{Jitter: retry.Equal}, 2, 0, 200 * ms, 400 * ms},
		{"decorrelated, 1st", retry.TaskPolicy(), 1, 0, 200 * ms, 600 * ms},
		{"decorrelated, 2nd", retry.TaskPolicy(), 2, 500 * ms, 200 * ms, 1500 * ms},
		{"decorrelated, at max", retry.Policy{Jitter: retry.Decorrelated, Max: 500 * ms}, 2, 400 * ms, 200 * ms, 500 * ms},
		{"decorrelated, by 1", retry.Policy{Jitter: retry.Decorrelated, Factor: 1}, 1, 0, 200 * ms, 400 * ms},
	} {
		low, okLow := c.policy.Next(c.attempt, c.previous, lowest)
		high, okHigh := c.policy.Next(c.attempt, c.previous, highest)
		if low != c.low || high != c.high || !okLow || !okHigh {
			t.Errorf("%s: from %v to %v, want from %v to %v", c.name, low, high, c.low, c.high)
		}
	}
}

func TestC2_AttemptsAreCounted(t *testing.T) {
	for attempts, last := range map[int]int{0: 3, 1: 1, 2: 2, 10: 10, math.MaxInt: math.MaxInt} {
		policy := retry.Policy{Attempts: attempts}
		if _, ok := policy.Next(last-1, 0, nil); !ok {
			t.Errorf("%d attempts: none after %d", attempts, last-1)
		}
		if _, ok := policy.Next(last, 0, nil); ok {
			t.Errorf("%d attempts: one more after %d", attempts, last)
		}
	}
}

func TestC2_AttemptsBelowOneAreAnError(t *testing.T) {
	for _, n := range []int{0, -1, math.MinInt} {
		if _, err := retry.TaskPolicy().WithAttempts(n); !errors.Is(err, retry.ErrPolicy) {
			t.Errorf("WithAttempts(%d): %v, want ErrPolicy", n, err)
		}
		if _, err := retry.Parse(strconv.Itoa(n)); !errors.Is(err, retry.ErrPolicy) {
			t.Errorf("Parse(%d): %v, want ErrPolicy", n, err)
		}
	}
	policy, err := retry.TaskPolicy().WithAttempts(1)
	if err != nil || policy.Attempts != 1 || policy.Jitter != retry.Decorrelated {
		t.Errorf("WithAttempts(1): %v, %v", policy, err)
	}
	if err := (retry.Policy{Attempts: -1}).Validate(); !errors.Is(err, retry.ErrPolicy) {
		t.Errorf("Validate: %v, want ErrPolicy", err)
	}
}

func TestC2_ValidateNamesEveryProblem(t *testing.T) {
	bad := retry.Policy{Attempts: -1, Base: -1, Max: -2, Factor: 0.5, Jitter: 9}
	err := bad.Validate()
	for _, word := range []string{"attempts -1", "base -1ns", "max -2ns", "factor 0.5", "jitter(9)"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%v: does not name %s", err, word)
		}
	}
	for _, policy := range []retry.Policy{
		{Base: 2, Max: 1},
		{Factor: math.NaN()},
		{Factor: math.Inf(1)},
		{Factor: -2},
		{Jitter: -1},
		bad,
	} {
		if !errors.Is(policy.Validate(), retry.ErrPolicy) {
			t.Errorf("%+v is valid", policy)
		}
		if delay, ok := policy.Next(1, 0, highest); ok || delay != 0 {
			t.Errorf("%+v: Next gives %v", policy, delay)
		}
	}
}

// TestC2_NextAgainstModel compares exponential delays with repeated
// multiplication in steps that cannot overflow, and all kinds with the bounds
// that their names promise.
func TestC2_NextAgainstModel(t *testing.T) {
	r := seeded.Rand(t)
	for range 20_000 {
		base := 1 + time.Duration(r.Int64N(int64(time.Minute)))
		policy := retry.Policy{
			Attempts: math.MaxInt,
			Base:     base,
			Max:      base + time.Duration(r.Int64N(int64(10*time.Hour))),
			Factor:   float64(1 + r.IntN(4)),
			Jitter:   retry.Jitter(r.IntN(4)),
		}
		attempt := 1 + r.IntN(60)
		grown := policy.Base
		for range attempt - 1 {
			grown = min(grown*time.Duration(policy.Factor), policy.Max)
		}
		previous := time.Duration(r.Int64N(int64(policy.Max) + 1))
		low, high := bounds(policy, grown, previous)
		if got, ok := policy.Next(attempt, previous, r.Uint64); !ok || got < low || got > high {
			t.Fatalf("%v after attempt %d and %v: %v, want from %v to %v", policy, attempt, previous, got, low, high)
		}
	}
}

func bounds(policy retry.Policy, grown, previous time.Duration) (low, high time.Duration) {
	switch policy.Jitter {
	case retry.Full:
		return 0, grown
	case retry.Equal:
		return grown / 2, grown
	case retry.Decorrelated:
		high = max(previous, policy.Base) * time.Duration(policy.Factor+1)
		return policy.Base, min(high, policy.Max)
	default:
		return grown, grown
	}
}

// TestC2_DecorrelatedSpreads runs many callers that failed together, and looks
// for any two that come back together each time.
func TestC2_DecorrelatedSpreads(t *testing.T) {
	r := seeded.Rand(t)
	policy := retry.Policy{Attempts: 5, Jitter: retry.Decorrelated}
	seen := map[[4]time.Duration]bool{}
	var sum time.Duration
	for range 10_000 {
		var delays [4]time.Duration
		var delay time.Duration
		for i := range delays {
			delay, _ = policy.Next(i+1, delay, r.Uint64)
			delays[i] = delay
		}
		if seen[delays] {
			t.Fatalf("two callers with the delays %v", delays)
		}
		seen[delays] = true
		sum += delays[0]
	}
	// The first delay is even from 200 ms to 600 ms. Its mean of 10,000 is off by
	// 1.2 ms as a rule, and by 10 ms never.
	if mean := sum / 10_000; mean < 390*time.Millisecond || mean > 410*time.Millisecond {
		t.Errorf("the mean of the first delay is %v, want 400ms", mean)
	}
}

func TestC2_NextIsDeterministic(t *testing.T) {
	policy := retry.Policy{Attempts: 50, Jitter: retry.Decorrelated}
	a, b := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
	var delayA, delayB time.Duration
	for attempt := 1; attempt < 50; attempt++ {
		delayA, _ = policy.Next(attempt, delayA, a.Uint64)
		delayB, _ = policy.Next(attempt, delayB, b.Uint64)
		if delayA != delayB {
			t.Fatalf("attempt %d: %v and %v", attempt, delayA, delayB)
		}
	}
}

func TestC2_JitterNeedsRandomBits(t *testing.T) {
	defer func() {
		if got, ok := recover().(string); !ok || !strings.Contains(got, "needs a source of random bits") {
			t.Errorf("recovered %v", got)
		}
	}()
	retry.TaskPolicy().Next(1, 0, nil)
}

func FuzzNext(f *testing.F) {
	f.Add(3, int64(200), 2.0, int64(30), int8(0), 1, int64(0), uint64(0))
	f.Add(math.MaxInt, int64(math.MaxInt64), 1e308, int64(math.MaxInt64), int8(3),
		math.MaxInt-1, int64(math.MaxInt64), uint64(math.MaxUint64))
	f.Add(0, int64(0), 0.0, int64(1), int8(2), math.MinInt, int64(-1), uint64(1))
	f.Fuzz(func(t *testing.T, attempts int, base int64, factor float64, limit int64, jitter int8,
		attempt int, previous int64, bits uint64,
	) {
		policy := retry.Policy{
			Attempts: attempts, Base: time.Duration(base), Factor: factor,
			Max: time.Duration(limit), Jitter: retry.Jitter(jitter),
		}
		delay, ok := policy.Next(attempt, time.Duration(previous), func() uint64 { return bits })
		longest := policy.Max
		if longest == 0 {
			longest = max(retry.DefaultMax, policy.Base)
		}
		if delay < 0 || ok && delay > longest {
			t.Errorf("%+v after attempt %d and %d: %v", policy, attempt, previous, delay)
		}
		if ok && policy.Validate() != nil {
			t.Errorf("%+v is invalid and has a next attempt", policy)
		}
	})
}
