package machine_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

// command applies an order to one task, and checks how many tasks it changed.
func (d *damaged) command(do queue.Order, id queue.ID, want int) {
	d.t.Helper()
	c := queue.Command{Do: do, Filter: queue.Filter{IDs: []queue.ID{id}}}
	if n, err := d.Command(d.t.Context(), start, c); n != want || err != nil {
		d.t.Errorf("%s changes %d, error %v; want %d", do, n, err, want)
	}
}

// A command finds a task that can be read again in the state of its row, not in that of
// the quarantine.
func TestC6_CommandOnDamagedTaskThatCanBeRead(t *testing.T) {
	d := newDamaged(t)
	late := queue.Spec{Options: queue.Options{Deadline: start.Add(time.Second)}}
	later := queue.Spec{Options: queue.Options{RunAt: start.Add(time.Second)}}
	ids := d.add(late, late, later)
	d.command(queue.OrderPause, ids[0], 1)
	d.command(queue.OrderPause, ids[1], 1)
	for _, id := range ids {
		d.damage(id)
	}
	d.maintain(time.Second)
	for _, id := range ids {
		d.is(id, queue.Held, queue.HoldDamaged)
		d.repair(id)
	}
	d.command(queue.OrderPause, ids[0], 0)
	d.command(queue.OrderResume, ids[1], 1)
	d.command(queue.OrderRetry, ids[2], 1)
	d.is(ids[0], queue.Paused, "")
	d.is(ids[1], queue.Waiting, "")
	d.is(ids[2], queue.Waiting, "")
	d.damagedOnes(0)
}

// A command does not release a task in quarantine whose predecessor was forgotten.
func TestC12_CommandOnDamagedTaskAfterOneThatIsForgotten(t *testing.T) {
	d := newDamaged(t)
	first := d.add(queue.Spec{})
	second := d.add(queue.Spec{Options: queue.Options{After: first}})
	die(t, d.Machine, start)
	d.damage(second[0])
	d.command(queue.OrderForget, first[0], 1)
	d.repair(second[0])
	d.command(queue.OrderPause, second[0], 0)
	d.is(second[0], queue.Cancelled, "")
}

// A command reads the row of each task once.
func TestC4_CommandReadsOnce(t *testing.T) {
	for _, f := range []queue.Filter{{}, {States: []queue.State{queue.Waiting}}} {
		d := newDamaged(t)
		d.add(make([]queue.Spec, 50)...)
		d.rows.reads = 0
		c := queue.Command{Do: queue.OrderCancel, Filter: f, All: true}
		if n, err := d.Command(t.Context(), start, c); n != 50 || err != nil {
			t.Errorf("%d cancelled, error %v", n, err)
		}
		if d.rows.reads != 50 {
			t.Errorf("%+v: %d rows were read for 50 tasks", f, d.rows.reads)
		}
	}
}

// If a command changes a task before it reaches it, through its effect on another task,
// it applies to the changed task.
func TestC4_CommandChangesWhatItHasFound(t *testing.T) {
	d := newDamaged(t)
	ids := d.add(queue.Spec{Options: queue.Options{Group: "g"}}, queue.Spec{Options: queue.Options{Group: "g"}})
	c := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Kind: "kind"}}
	if n, err := d.Command(t.Context(), start, c); n != 2 || err != nil {
		t.Errorf("%d cancelled, error %v", n, err)
	}
	var steps []queue.Trigger
	for _, s := range d.find(ids[1]).Steps {
		steps = append(steps, s.On)
	}
	if want := []queue.Trigger{queue.OnSubmit, queue.OnUnhold, queue.OnCancel}; !slices.Equal(steps, want) {
		t.Errorf("the steps of the second are %v, want %v", steps, want)
	}
}
