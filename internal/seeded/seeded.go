// Package seeded is the randomness of tests. A test that draws random numbers
// logs the seed that repeats them.
package seeded

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable that gives the seed: a number, or
// [Fresh].
const Variable = "STINT_SEED"

// Fresh as the value of [Variable] draws a new seed for each test. Long runs use
// it; a seed that fails there becomes a test of its own.
const Fresh = "random"

// usual is the seed when [Variable] is not set: the same for all, so that a
// change fails its tests for what it changes and not by chance.
const usual = 1

// Seed returns the seed of a random test and logs it.
func Seed(tb testing.TB) uint64 {
	tb.Helper()
	seed := uint64(usual)
	switch text := os.Getenv(Variable); text {
	case "":
	case Fresh:
		seed = rand.Uint64()
	default:
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			tb.Fatalf("%s is a number or %q: %v", Variable, Fresh, err)
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
