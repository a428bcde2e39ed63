package queue_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
)

// Predecessors returns a purged task as Forgotten, also if a later task has its ID, and all
// others in order.
func TestC12_PredecessorsNameForgottenTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		var ids []queue.ID
		for range 150 {
			ids = append(ids, r.prepared(queue.Spec{Kind: "nobody's"}))
		}
		last := r.prepared(queue.Spec{Kind: "nobody's", Options: queue.Options{After: ids[:1], AfterAny: ids[1:]}})
		for _, id := range ids[2:4] {
			r.command(queue.OrderCancel, id)
			r.command(queue.OrderForget, id)
		}
		time.Sleep(time.Second)
		r.accept(queue.NewTask{ID: ids[3], Spec: queue.Spec{Kind: "another"}})
		task, err := r.Get(t.Context(), last)
		if err != nil {
			t.Fatal(err)
		}
		before, err := r.Predecessors(t.Context(), task)
		if err != nil || len(before) != len(ids) {
			t.Fatalf("%d tasks, error %v; want %d", len(before), err, len(ids))
		}
		for i, p := range before {
			if forgotten := i == 2 || i == 3; p.ID != ids[i] || p.Forgotten != forgotten || (p.State == 0) != forgotten {
				t.Errorf("task %d is %s in the state %s, forgotten: %t", i, p.ID, p.State, p.Forgotten)
			}
		}
	})
}
