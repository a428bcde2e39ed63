package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// task returns the task with this ID, after checkTask.
func (c *trial) task(id queue.ID) queue.Task {
	c.Helper()
	tasks := c.find(queue.Filter{IDs: []queue.ID{id}})
	if len(tasks) != 1 {
		c.Fatalf("%d tasks have the ID %s", len(tasks), id)
	}
	if err := checkTask(&tasks[0]); err != nil {
		c.Errorf("task %s: %v\n%s", id, err, life(tasks[0]))
	}
	return tasks[0]
}

// is checks the state of tasks.
func (c *trial) is(want queue.State, ids ...queue.ID) {
	c.Helper()
	for i, id := range ids {
		if t := c.task(id); t.State != want {
			c.Fatalf("task %d is %s, want %s\n%s", i, t.State, want, life(t))
		}
	}
}

// heldBy checks that a task is held, and that its first hold is want.
func (c *trial) heldBy(id queue.ID, want queue.HoldCode) {
	c.Helper()
	t := c.task(id)
	if t.State != queue.Held || len(t.Holds) == 0 || t.Holds[0].Code != want {
		c.Fatalf("the task is %s with the holds %v, want it held by %s\n%s", t.State, t.Holds, want, life(t))
	}
}

// gone checks that the store has forgotten tasks.
func (c *trial) gone(ids ...queue.ID) {
	c.Helper()
	if tasks := c.find(queue.Filter{IDs: ids}); len(tasks) > 0 {
		c.Errorf("the store remembers %d of %d forgotten tasks", len(tasks), len(ids))
	}
}

// startsAt checks that a task starts at a time, and not earlier. It ends the task.
func (c *trial) startsAt(at time.Time, id queue.ID) {
	c.Helper()
	c.now = at.Add(-1)
	c.maintain()
	c.is(queue.Scheduled, id)
	c.now = at
	c.maintain()
	c.succeeds(c.started(1, id)[0])
}

// firstReason returns the binding reason of a task, which must be code.
func (c *trial) firstReason(id queue.ID, code stint.Code) queue.Reason {
	c.Helper()
	reasons := c.explain(id)
	if len(reasons) == 0 || reasons[0].Code != code {
		c.Fatalf("the reasons are %+v, want %s first", reasons, code)
	}
	return reasons[0]
}

// anyReason returns a reason of a task that need not be the binding one.
func (c *trial) anyReason(id queue.ID, code stint.Code) queue.Reason {
	c.Helper()
	reasons := c.explain(id)
	i := slices.IndexFunc(reasons, func(r queue.Reason) bool { return r.Code == code })
	if i < 0 {
		c.Fatalf("the reasons are %+v, want %s among them", reasons, code)
	}
	return reasons[i]
}

// equal checks that two values have the same JSON.
func (c *trial) equal(what string, got, want any) {
	c.Helper()
	if err := sameJSON(what, got, want); err != nil {
		c.Error(err)
	}
}

// sameJSON compares two values by their JSON.
func sameJSON(what string, got, want any) error {
	g, err := json.Marshal(got)
	if err != nil {
		return err
	}
	w, err := json.Marshal(want)
	if err != nil {
		return err
	}
	if string(g) != string(w) {
		return fmt.Errorf("%s are\n%s, want\n%s", what, g, w)
	}
	return nil
}

// check holds the store against the invariants of the contract, unless it is closed.
func (c *trial) check() {
	c.Helper()
	if c.closed {
		return
	}
	if err := Check(c.Context(), c.Store); err != nil {
		c.Errorf("the store breaks its contract:\n%v", err)
	}
}
