package simulation_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/internal/seeded"
)

// worlds returns the number of seeds of a test, which STINT_SEEDS sets.
func worlds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("STINT_SEEDS")
	if text == "" {
		return seedsUsual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("STINT_SEEDS: %v", err)
	}
	return n
}

// simulate runs the world of a seed. One goroutine runs at a time: goroutines that one
// step wakes take turns in the same order each time.
func simulate(t *testing.T, seed uint64) (w *world) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, func(t *testing.T) {
		w = newWorld(t.Context(), seed)
		_ = w.run()
	})
	return w
}

// keep writes the whole history to a file, for go test -artifacts.
func keep(t *testing.T, w *world, as string) {
	t.Helper()
	name := filepath.Join(t.ArtifactDir(), fmt.Sprintf("%s-%d", as, w.seed))
	if err := os.WriteFile(name, []byte(w.history.String()), 0o600); err != nil {
		t.Error(err)
	}
}

// tail returns the end of a history.
func tail(history string, lines int) string {
	all := strings.Split(strings.TrimSpace(history), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// failedBefore are seeds with which a simulation has failed:
//   - 13135182254516911978: the workers were stopped while a submit was being repeated.
//   - 15170363060474020465: a hook and a schedule looked up the same task at the same time.
//   - 252: the answer to a claim came when its lease was over, as if the process had been stopped.
//   - 1118: the disk failed with the first batch of Open.
var failedBefore = []uint64{13135182254516911978, 15170363060474020465, 252, 1118}

// TestC6_Simulation runs a queue with all faults and changes that the scenario knows, by
// seeds.
func TestC6_Simulation(t *testing.T) {
	seeds, first := failedBefore, seeded.Seed(t)
	for i := range uint64(worlds(t)) {
		seeds = append(seeds, first+i)
	}
	for _, seed := range seeds {
		w := simulate(t, seed)
		if w.broken != nil {
			keep(t, w, "history")
			t.Fatalf("%s=%d, after %d steps: %v\n%s", seeded.Variable, seed, w.steps, w.broken, tail(w.history.String(), 60))
		}
	}
}
