// Package seeded is the randomness of tests. A test that draws lots prints what
// it takes to draw the same ones again.
package seeded

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that a seed can be given in.
const Variable = "STINT_SEED"

// Seed returns the seed of a random test and logs it: the one that is given in
// [Variable], so that a failure can be repeated, or else a new one.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := rand.Uint64()
	if text := os.Getenv(Variable); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			tb.Fatalf("%s: %v", Variable, err)
		}
		seed = given
	}
	tb.Logf("%s=%d", Variable, seed)
	return seed
}

// Rand returns a source for a random test. It is for one goroutine at a time.
func Rand(tb testing.TB) *rand.Rand {
	tb.Helper()
	return rand.New(rand.NewPCG(Seed(tb), 0))
}
