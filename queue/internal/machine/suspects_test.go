package machine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
)

// TestC9_SuspectsWaitForTheEndOfOneToBeDurable: if the next suspect were to kill
// the process before it is written down that the one before has succeeded, both
// would be dead.
func TestC9_SuspectsWaitForTheEndOfOneToBeDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRows()
		m := open(t, r)
		ctx, now := t.Context(), start
		var ids queue.IDs
		tasks := []queue.NewTask{newTask(&ids, queue.Spec{MaxCrashes: 2}), newTask(&ids, queue.Spec{MaxCrashes: 2})}
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
		if _, err := m.Tend(ctx, now, 0); err != nil {
			t.Fatal(err)
		}
		first := claim()
		if len(first) != 1 {
			t.Fatalf("%d tasks run that the next crash makes dead", len(first))
		}
		r.gate = make(chan struct{})
		o := queue.Outcome{ID: first[0].ID, Token: first[0].Lease.Token, On: queue.OnSuccess}
		go func() { _, _ = m.Settle(ctx, now, []queue.Outcome{o}) }()
		synctest.Wait()
		startsWhenDurable(t, r, func() int { return len(claim()) })
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}
