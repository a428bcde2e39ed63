package storetest

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stintgo/stint/queue"
)

// Config is how a store is to be opened for a case. The zero value is the store
// as it is by default.
type Config struct {
	MaxPayload, MaxResult, MaxCheckpoint int // bytes

	WatchBuffer int // events that a watcher may be behind
}

func (c Config) withDefaults() Config {
	const mebibyte, events = 1 << 20, 1024
	return Config{
		MaxPayload: cmp.Or(c.MaxPayload, mebibyte), MaxResult: cmp.Or(c.MaxResult, mebibyte),
		MaxCheckpoint: cmp.Or(c.MaxCheckpoint, mebibyte), WatchBuffer: cmp.Or(c.WatchBuffer, events),
	}
}

// Harness is a store to be tested.
type Harness struct {
	Store queue.Store
	// Durable says that the store's tasks survive the end of its process. A store
	// that is not Durable has no Reopen, and one that is has to have it: there is
	// no third way, by which cases could be left out unseen.
	Durable bool
	// Reopen ends the store as the end of its process would, without Close unless
	// the case has closed it, and opens it again on what is left.
	Reopen func(t *testing.T) queue.Store
	// Break has the n-th write from now on fail, and all that come after it, in
	// whatever the store keeps its tasks in, until Reopen or Break(0); n counts from
	// 1. What a store does that cannot go on is its own, but it says so with
	// [queue.ErrUnavailable]. A store that is Durable has to have it.
	Break func(n int)
	// PowerLoss says that Reopen is a loss of power, after which the store need not
	// remember claims. A store that can be tested in that way runs the suite once
	// more with it.
	PowerLoss bool
	// Remote says that the store takes all who claim for [queue.Claim.Remote],
	// because they are.
	Remote bool
}

// Open opens an empty store for one test, and frees what it takes with
// t.Cleanup.
type Open func(t *testing.T, cfg Config) Harness

// testCase is one behaviour of the contract. Its name begins with the row of
// docs/spec.md that it belongs to.
type testCase struct {
	name string
	cfg  Config
	run  func(*trial)
}

// Run tests a store. All of it has to pass: no case is left out for a store that
// lacks something.
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
