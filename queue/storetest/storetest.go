package storetest

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stintgo/stint/queue"
)

// Config is the configuration that a case needs. The zero value is the default of the
// store.
type Config struct {
	MaxPayload, MaxResult, MaxCheckpoint int // bytes

	WatchBuffer int // events that a watcher may lag behind before it misses some
}

func (c Config) withDefaults() Config {
	const mebibyte, events = 1 << 20, 1024
	return Config{
		MaxPayload: cmp.Or(c.MaxPayload, mebibyte), MaxResult: cmp.Or(c.MaxResult, mebibyte),
		MaxCheckpoint: cmp.Or(c.MaxCheckpoint, mebibyte), WatchBuffer: cmp.Or(c.WatchBuffer, events),
	}
}

// Harness is a store under test.
type Harness struct {
	Store queue.Store
	// Durable says that the store's tasks survive the end of its process. A store has
	// a Reopen if and only if it is Durable, so that no case is skipped unseen.
	Durable bool
	// Reopen ends the store as the end of its process does, without calling Close, and
	// opens it again on the data that is left. A case may have called Close before.
	Reopen func(t *testing.T) queue.Store
	// Break makes the n-th write from now on fail, and all later ones, in the medium
	// that holds the store's tasks, until Reopen or Break(0); n counts from 1. A call
	// that fails for this reason must return [queue.ErrUnavailable]. A store has a
	// Break if and only if it is Durable.
	Break func(n int)
	// PowerLoss says that Reopen simulates a loss of power, after which the store need
	// not remember claims. The tests of a store that supports this run the suite a
	// second time with it.
	PowerLoss bool
	// Remote says that the store treats every claim as [queue.Claim.Remote], because
	// its callers are in other processes.
	Remote bool
	// Takeovers returns the takeovers of the store since its last call, for Model; nil if no
	// process takes the store over while it is in use.
	Takeovers func() []Takeover
}

// Open opens an empty store for one test and closes it with t.Cleanup.
type Open func(t *testing.T, cfg Config) Harness

// testCase tests one behaviour of the contract. Its name begins with its row in
// docs/spec.md.
type testCase struct {
	name string
	cfg  Config
	run  func(*trial)
}

// Run tests a store with every case. A case that needs a durable store ends early on a
// store that is not [Harness.Durable]; no other case is skipped.
func Run(t *testing.T, open Open) {
	t.Helper()
	for _, c := range cases() {
		t.Run(c.name, func(t *testing.T) {
			trial := newTrial(t, open(t, c.cfg))
			c.run(trial)
			trial.check()
		})
	}
}

func cases() []testCase {
	return slices.Concat(submitCases(), orderCases(), claimCases(), settleCases(), leaseCases(), commandCases(),
		dependCases(), predecessorCases(), uniqueCases(), timeCases(), scheduleCases(), findCases(), settingsCases(),
		totalCases(), explainCases(), signalCases(), watchCases(), closeCases(), reopenCases(), restartCases(),
		clockCases(), suspectCases(), faultCases(), concurrentCases())
}
