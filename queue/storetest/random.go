package storetest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// random returns a source whose seed is printed when the test fails, and can be
// given in the environment variable STINT_SEED.
func random(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("STINT_SEED"); text != "" {
		given, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("STINT_SEED: %v", err)
		}
		seed = given
	}
	t.Logf("STINT_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
