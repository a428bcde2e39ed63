package machine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// claimRemote claims a task for a worker of another process.
func claimRemote(t *testing.T, s queue.Store) queue.Task {
	t.Helper()
	got, err := s.Claim(t.Context(), start, queue.Claim{
		Worker: "w", Kinds: []string{"kind"}, Max: 1, Lease: time.Minute, Remote: true,
	})
	if err != nil || len(got.Tasks) != 1 {
		t.Fatalf("got %d tasks, error %v", len(got.Tasks), err)
	}
	return got.Tasks[0]
}

// A claim that a limit allows only because another lease has ended is answered when that end is
// durable: a crash before would bring the ended lease back, and more tasks would run than the
// limit allows. A claim for which the limits have room anyway waits for nothing.
func TestC6_ClaimWaitsForTheEndThatMadeRoom(t *testing.T) {
	caps := stint.Caps{Low: 1}
	low := queue.Options{Tier: stint.Low}
	keyed := func(key string) queue.Options { return queue.Options{Key: key} }
	none := queue.Options{}
	for name, c := range map[string]struct {
		limits       queue.Settings
		ended, other queue.Options // of the task that ends, and the task that is claimed
		waits        bool
	}{
		"no limit":                              {queue.Settings{}, none, none, false},
		"the only slot":                         {queue.Settings{Max: 1}, none, none, true},
		"another slot":                          {queue.Settings{Max: 2}, none, none, false},
		"a tier at its cap":                     {queue.Settings{Caps: caps}, low, low, true},
		"a tier without a cap":                  {queue.Settings{Caps: caps}, low, none, false},
		"the key's only slot":                   {queue.Settings{PerKey: 1}, keyed("a"), keyed("a"), true},
		"another slot of the key":               {queue.Settings{PerKey: 2}, keyed("a"), keyed("a"), false},
		"another key":                           {queue.Settings{PerKey: 1}, keyed("a"), keyed("b"), false},
		"no key":                                {queue.Settings{PerKey: 1}, keyed("a"), none, false},
		"the only slot of all queues":           {queue.Settings{Total: 1}, none, none, true},
		"another slot of all queues":            {queue.Settings{Total: 2}, none, none, false},
		"the key's only slot in all queues":     {queue.Settings{TotalPerKey: 1}, keyed("a"), keyed("a"), true},
		"another slot of the key in all queues": {queue.Settings{TotalPerKey: 2}, keyed("a"), keyed("a"), false},
		"another key in all queues":             {queue.Settings{TotalPerKey: 1}, keyed("a"), keyed("b"), false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRows()
				m := openOn(t, r)
				defer func() { _ = m.Close() }()
				of := queue.DefaultQueue
				if c.limits.Total > 0 || c.limits.TotalPerKey > 0 {
					of = ""
				}
				if err := m.Configure(t.Context(), start, of, queue.Change{Set: c.limits}); err != nil {
					t.Fatal(err)
				}
				var ids queue.IDs
				submit(t, m, newTask(&ids, queue.Spec{Options: c.ended}))
				ending := claimRemote(t, m)
				submit(t, m, newTask(&ids, queue.Spec{Options: c.other}))
				r.gate = make(chan struct{})

				go func() {
					done := queue.Outcome{ID: ending.ID, Token: ending.Lease.Token, Kind: queue.OutcomeSuccess}
					if errs, err := m.Settle(t.Context(), start, []queue.Outcome{done}); err != nil || errs[0] != nil {
						t.Error(errs, err)
					}
				}()
				synctest.Wait()
				claimed := make(chan struct{})
				go func() {
					defer close(claimed)
					claimRemote(t, m)
				}()
				synctest.Wait()
				select {
				case <-claimed:
					if c.waits {
						t.Error("the claim is answered before the end is durable")
					}
				default:
					if !c.waits {
						t.Error("the claim waits for an end that it does not need")
					}
				}
				close(r.gate)
				<-claimed
				synctest.Wait()
			})
		})
	}
}
