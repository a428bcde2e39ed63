package machine_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
)

// The next suspect starts when the success of the one before is durable: otherwise its
// crash would make both dead.
func TestC9_SuspectsWaitForTheEndOfOneToBeDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRows()
		m := open(t, r)
		ctx, now := t.Context(), start
		var ids queue.IDs
		twoCrashes := queue.Spec{Options: queue.Options{MaxCrashes: 2}}
		tasks := []queue.NewTask{newTask(&ids, twoCrashes), newTask(&ids, twoCrashes)}
		if _, err := m.Submit(ctx, now, tasks); err != nil {
			t.Fatal(err)
		}
		claim := func() []queue.Task {
			c := queue.Claim{Worker: "w", Kinds: []string{tasks[0].Kind}, Max: 2, Lease: time.Minute}
			got, err := m.Claim(ctx, now, c)
			if err != nil {
				t.Error(err)
			}
			return got.Tasks
		}
		if n := len(claim()); n != 2 {
			t.Fatalf("%d tasks have started", n)
		}
		now = now.Add(time.Hour)
		if _, err := m.Maintain(ctx, now, 0); err != nil {
			t.Fatal(err)
		}
		first := claim()
		if len(first) != 1 {
			t.Fatalf("%d tasks run that the next crash makes dead", len(first))
		}
		r.gate = make(chan struct{})
		o := queue.Outcome{ID: first[0].ID, Token: first[0].Lease.Token, Kind: queue.OutcomeSuccess}
		go func() { _, _ = m.Settle(ctx, now, []queue.Outcome{o}) }()
		synctest.Wait()
		startsWhenDurable(t, r, func() int { return len(claim()) })
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A suspect that a limit of its key holds as well counts as one held task.
func TestC9_SuspectHeldByItsKeyIsCountedOnce(t *testing.T) {
	for name, s := range map[string]queue.Settings{
		"no limit": {}, "in its queue": {PerKey: 1}, "in all queues": {TotalPerKey: 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := open(t, newRows())
			var ids queue.IDs
			suspect := queue.Spec{Options: queue.Options{Key: "k", MaxCrashes: 2}}
			submit(t, m, newTask(&ids, suspect), newTask(&ids, suspect))
			claim(t, m, 2)
			now := start.Add(time.Hour)
			if _, err := m.Maintain(t.Context(), now, 0); err != nil {
				t.Fatal(err)
			}
			if err := m.Configure(t.Context(), now, "", queue.Change{Set: s}); err != nil {
				t.Fatal(err)
			}
			if n := len(claim(t, m, 2)); n != 1 {
				t.Fatalf("%d suspects run", n)
			}
			stats, err := m.Stats(t.Context(), now)
			want := map[queue.State]int{queue.Running: 1, queue.Held: 1}
			if got := stats.Queues["default"].States; !maps.Equal(got, want) || err != nil {
				t.Errorf("the counts are %v, want %v; error %v", got, want, err)
			}
		})
	}
}
