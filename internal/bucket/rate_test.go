package bucket_test

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/stintgo/stint/internal/bucket"
	"github.com/stintgo/stint/internal/seeded"
)

// serve lets n callers in a row wait, each for the tokens that next says, and
// returns the time at which the last got them and how many tokens they were.
func serve(t *testing.T, b *bucket.Bucket, n int, next func() int64) (at, tokens int64) {
	t.Helper()
	for range n {
		amount := next()
		b.Push(at, &bucket.Entry{}, 3, amount)
		for b.Granted() == nil {
			due, ok := b.Next()
			if !ok || due <= at {
				t.Fatalf("waiting at %d, and next is %d, %t", at, due, ok)
			}
			at = due
			b.Advance(at)
		}
		tokens += amount
	}
	return at, tokens
}

// TestB10_RateIsExact checks that a caller that always waits gets exactly the rate,
// to the nanosecond: the time of the last token is the first whole nanosecond
// at which the rate has earned it.
func TestB10_RateIsExact(t *testing.T) {
	rates := []float64{
		bucket.MinRate, 0.3, 1, 1.5, 7, 100, 12_345.678, 1e6, 1e9, 1_000_000_007, 1<<31 - 1, 10e9, bucket.MaxRate,
	}
	for _, rate := range rates {
		for _, capacity := range []int64{1, 1000, max(int64(rate), 1)} {
			for _, chunk := range []int64{1, 7, capacity, 3*capacity + 1} {
				t.Run(fmt.Sprint(rate, capacity, chunk), func(t *testing.T) {
					b := newBucket(rate, capacity)
					// No longer than the nine years that can be counted.
					waits := int(min(500, 3*rate*1e7/float64(chunk)))
					at, tokens := serve(t, b, waits, func() int64 { return chunk })
					if want := timeFor(rate, tokens-capacity); at != want {
						t.Errorf("%d tokens took %d ns, want %d", tokens, at, want)
					}
				})
			}
		}
	}
}

// timeFor returns the first nanosecond at which a rate has earned some tokens.
func timeFor(rate float64, tokens int64) int64 {
	if tokens <= 0 {
		return 0
	}
	ns := new(big.Rat).SetInt64(tokens)
	ns.Mul(ns, big.NewRat(1e9, 1)).Quo(ns, new(big.Rat).SetFloat64(rate))
	up := new(big.Int).Add(ns.Num(), new(big.Int).Sub(ns.Denom(), big.NewInt(1)))
	return up.Div(up, ns.Denom()).Int64()
}

// TestB10_RateOfRandomChunks is the same for chunks of random sizes, over a
// million waits, within the 0.1 % that is promised; it is exact, too.
func TestB10_RateOfRandomChunks(t *testing.T) {
	rng := seeded.Rand(t)
	for _, test := range []struct {
		rate float64
		bits int // of a chunk
	}{{1, 9}, {1000, 18}, {1e6, 18}, {1<<31 - 1, 30}} {
		const capacity = 1 << 16
		b := newBucket(test.rate, capacity)
		at, tokens := serve(t, b, 250_000, func() int64 { return rng.Int64N(1 << (1 + rng.IntN(test.bits))) })
		if want := timeFor(test.rate, tokens-capacity); at != want {
			t.Errorf("rate %v: %d tokens took %d ns, want %d", test.rate, tokens, at, want)
		}
	}
}

// TestB10_RateSurvivesManyChanges sets the rate to what it is a thousand times
// a token. What a change rounds down must not add up.
func TestB10_RateSurvivesManyChanges(t *testing.T) {
	const rate, seconds = 10, 100
	b := newBucket(rate, rate*seconds)
	b.Take(0, rate*seconds)
	const step = 100_003 // nanoseconds
	at := int64(0)
	for ; at < seconds*1e9; at += step {
		b.Freeze()
		b.Set(at, rate, rate*seconds)
	}
	if got := b.Tokens(at); got < rate*seconds*999/1000 || got > rate*seconds {
		t.Errorf("%d tokens after %d s at %d/s", got, seconds, rate)
	}
}

// TestB10_FreeAtIsTheFirstNanosecond checks the inverse of the curve against
// the curve.
func TestB10_FreeAtIsTheFirstNanosecond(t *testing.T) {
	rng := seeded.Rand(t)
	for range 20_000 {
		rate := 1e-3 * float64(uint64(1)<<rng.IntN(44)) * (1 + rng.Float64())
		capacity := 1 + rng.Int64N(1<<30)
		b := newBucket(min(rate, bucket.MaxRate), capacity)
		b.Take(0, capacity)
		n := 1 + rng.Int64N(capacity)
		at := b.FreeAt(0, n)
		if at == bucket.Forever {
			continue
		}
		if before, then := b.Tokens(at-1), b.Tokens(at); before >= n || then < n {
			t.Fatalf("rate %v: free at %d for %d tokens, with %d before and %d then", rate, at, n, before, then)
		}
	}
}
