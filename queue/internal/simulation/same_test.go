//go:build !race

// The race detector shuffles goroutines, so that it finds more: with it a seed has
// more than one history.

package simulation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
)

// TestC4_SimulationIsDeterministic shows that a seed that has found something will
// find it again.
func TestC4_SimulationIsDeterministic(t *testing.T) {
	first := seeded.Seed(t)
	for i := range uint64(worlds(t)) {
		once, again := simulate(t, first+i), simulate(t, first+i)
		if a, b := once.history.String(), again.history.String(); a != b {
			keep(t, once, "once")
			keep(t, again, "again")
			t.Fatalf("%s=%d: %s", seeded.Variable, first+i, difference(a, b))
		}
	}
}

// difference is where two histories part.
func difference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("line %d:\n%s\n- %s\n+ %s", i, strings.Join(as[max(0, i-20):i], "\n"), as[i], bs[i])
		}
	}
	return fmt.Sprintf("one is %d lines longer", len(as)-len(bs))
}
