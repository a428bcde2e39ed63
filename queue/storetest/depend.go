package storetest

import (
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func dependCases() []testCase {
	return []testCase{
		{"C12_After", Config{}, after},
		{"C12_AfterInOneCall", Config{}, afterInOneCall},
		{"C12_AfterFinishedTasks", Config{}, afterWhatHasEnded},
		{"C12_AfterDeadIsHeld", Config{}, afterDead},
		{"C12_AfterForgotten", Config{}, afterForgotten},
		{"C12_AfterAReusedID", Config{}, afterReusedID},
		{"C12_AfterAndDelay", Config{}, afterAndDelay},
		{"C12_Batch", Config{}, batch},
		{"C12_BatchGrows", Config{}, batchGrows},
		{"C12_BatchInOneCall", Config{}, batchInOneCall},
		{"C12_GroupIsOneByOne", Config{}, groupIsOneByOne},
		{"C12_GroupThroughRetries", Config{}, groupThroughRetries},
		{"C12_GroupAndFinishedTasks", Config{}, groupAndFinished},
		{"C12_GroupAndRetriedTasks", Config{}, groupAndRetried},
		{"C12_GroupsAreIndependent", Config{}, groupsAreIndependent},
	}
}

func after(c *trial) {
	first, second := c.add(queue.Options{}), c.add(queue.Options{Queue: "other"})
	third := c.add(queue.Options{After: []queue.ID{first, second, first}, Tier: stint.Highest})
	waits := func(want ...queue.Hold) {
		c.Helper()
		holds := slices.Compact(c.task(third).Holds) // the ID that is listed twice may have one hold or two
		if len(holds) > len(want) {
			holds = holds[:len(want)]
		}
		if c.is(queue.Held, third); !slices.Equal(holds, want) {
			c.Errorf("it is held by %+v, want %+v", holds, want)
		}
	}
	waits(queue.Hold{Code: queue.HoldDependency, What: first.String(), State: queue.Waiting},
		queue.Hold{Code: queue.HoldDependency, What: second.String(), State: queue.Waiting})
	t := c.claimOne()
	waits(queue.Hold{Code: queue.HoldDependency, What: first.String(), State: queue.Running})
	c.fails(t, queue.Outcome{})
	c.is(queue.Held, third)
	c.succeeds(c.claimOne())
	waits(queue.Hold{Code: queue.HoldDependency, What: second.String(), State: queue.Waiting})
	c.started(5)
	c.succeeds(c.claimFrom("other", 1)[0])
	c.is(queue.Waiting, third)
	if t := c.task(third); len(t.Steps) != 2 || t.Steps[0].To != queue.Held || t.Steps[1].On != queue.OnUnhold {
		c.Errorf("its steps do not show the hold\n%s", life(t))
	}
	c.started(5, third)
}

func afterInOneCall(c *trial) {
	a := c.fresh(queue.Options{})
	b := c.fresh(queue.Options{After: []queue.ID{a.ID}})
	d := c.fresh(queue.Options{After: []queue.ID{a.ID, b.ID}})
	c.submitTasks(a, b, d)
	for _, t := range []queue.NewTask{a, b, d} {
		c.started(5, t.ID)
		c.succeeds(c.task(t.ID))
	}
}

func afterWhatHasEnded(c *trial) {
	succeeded, dead := c.addInState(queue.Succeeded), c.addInState(queue.Dead)
	c.is(queue.Waiting, c.add(queue.Options{After: []queue.ID{succeeded}}))
	held := c.add(queue.Options{After: []queue.ID{succeeded, dead}})
	c.heldBy(held, queue.HoldDependency)
	if h := c.task(held).Holds; len(h) != 1 || h[0].What != dead.String() || h[0].State != queue.Dead {
		c.Errorf("it is held by %+v", h)
	}
}

func afterDead(c *trial) {
	first := c.add(queue.Options{})
	second := c.add(queue.Options{After: []queue.ID{first}})
	third := c.add(queue.Options{After: []queue.ID{second}})
	c.dies()
	c.pass(time.Hour)
	c.maintain()
	c.heldBy(second, queue.HoldDependency)
	c.command(queue.OrderRetry, first)
	c.is(queue.Held, second)
	c.succeeds(c.claimOne())
	c.is(queue.Waiting, second)
	c.command(queue.OrderCancel, second)
	c.heldBy(third, queue.HoldDependency)
	c.command(queue.OrderRetry, second)
	c.succeeds(c.claimOne())
	c.is(queue.Waiting, third)
}

// afterForgotten shows that a forgotten predecessor counts as succeeded if it had
// succeeded; otherwise its successors are cancelled, so that none waits forever.
func afterForgotten(c *trial) {
	first, second := c.add(queue.Options{}), c.add(queue.Options{})
	both := c.add(queue.Options{After: []queue.ID{first, second}})
	c.succeeds(c.claimOne())
	c.command(queue.OrderForget, first)
	c.heldBy(both, queue.HoldDependency)
	if h := c.task(both).Holds[0]; h.What != second.String() {
		c.Errorf("it waits for task %s, want only the predecessor that has not succeeded", h.What)
	}
	c.succeeds(c.claimOne())
	c.is(queue.Waiting, both)

	dead := c.addInState(queue.Dead)
	held, paused := c.add(queue.Options{After: []queue.ID{dead}}), c.add(queue.Options{After: []queue.ID{dead}})
	then := c.add(queue.Options{After: []queue.ID{held}})
	c.command(queue.OrderPause, paused)
	c.command(queue.OrderForget, dead)
	c.is(queue.Cancelled, held, paused)
	c.is(queue.Cancelled, then) // its predecessor held is cancelled
	for _, id := range []queue.ID{held, then} {
		if s := c.task(id).Steps; s[len(s)-1].Detail == "" {
			c.Errorf("the step that cancelled task %s has no detail", id)
		}
	}
	c.command(queue.OrderRetry, held)
	c.is(queue.Waiting, held)
	c.is(queue.Cancelled, then)
	c.command(queue.OrderRetry, then)
	c.heldBy(then, queue.HoldDependency)
	for _, t := range c.started(5, both, held) {
		c.succeeds(t)
	}
	c.is(queue.Waiting, then)
}

// afterReusedID shows that a task waits only for the predecessors that existed when it was
// submitted. A later task with the ID of a predecessor that succeeded and was forgotten is
// not one of them, also after the store is reopened or the task retried.
func afterReusedID(c *trial) {
	first, second := c.fresh(queue.Options{}), c.add(queue.Options{Queue: "other"})
	c.submitTasks(first)
	after := []queue.ID{first.ID}
	waiting, late := c.add(queue.Options{After: after}), c.add(queue.Options{After: after, RunAt: c.now.Add(time.Hour)})
	held := c.add(queue.Options{After: []queue.ID{first.ID, second}})
	c.succeeds(c.claimOne())
	c.command(queue.OrderForget, first.ID)
	first.After = []queue.ID{waiting} // a cycle, if the ID meant the new task
	c.submitTasks(first)
	unchanged := func() {
		c.is(queue.Waiting, waiting)
		c.is(queue.Scheduled, late)
		c.heldBy(first.ID, queue.HoldDependency)
		c.heldBy(held, queue.HoldDependency)
		if h := c.task(held).Holds; len(h) != 1 || h[0].What != second.String() {
			c.Errorf("it is held by %+v", h)
		}
	}
	unchanged()
	c.command(queue.OrderCancel, waiting)
	c.command(queue.OrderRetry, waiting)
	if unchanged(); c.Durable && c.crash() {
		unchanged()
	}
	c.command(queue.OrderCancel, first.ID)
	c.command(queue.OrderForget, first.ID)
	c.succeeds(c.claimFrom("other", 1)[0])
	c.pass(time.Hour)
	c.maintain()
	c.started(9, waiting, late, held)
}

func afterAndDelay(c *trial) {
	first := c.add(queue.Options{})
	second := c.add(queue.Options{After: []queue.ID{first}, RunAt: c.now.Add(time.Hour)})
	third := c.add(queue.Options{After: []queue.ID{first}, RunAt: c.now.Add(3 * time.Hour)})
	c.is(queue.Scheduled, second, third)
	c.pass(time.Hour)
	c.maintain()
	c.is(queue.Held, second)
	c.succeeds(c.claimOne())
	c.is(queue.Waiting, second)
	c.is(queue.Scheduled, third)
	c.pass(2 * time.Hour)
	c.maintain()
	c.is(queue.Waiting, third)
}

// batch shows that every final state of its tasks counts as an end, and that a retry
// makes the successor wait again.
func batch(c *trial) {
	id := c.ids.New(c.now)
	early := c.addSpec(queue.Spec{Kind: "early", Options: queue.Options{AfterBatch: id}})
	c.is(queue.Waiting, early) // the batch has no tasks yet
	members := c.several(4, queue.Options{Batch: id})
	c.command(queue.OrderCancel, early)
	last := c.add(queue.Options{AfterBatch: id})
	c.heldBy(last, queue.HoldDependency)
	if h := c.task(last).Holds[0]; h.What != id.String() {
		c.Errorf("it is held by %+v", h)
	}
	c.succeeds(c.claimOne())
	c.dies()
	c.command(queue.OrderCancel, members[2])
	c.command(queue.OrderPause, members[3])
	c.is(queue.Held, last)
	c.command(queue.OrderCancel, members[3])
	c.is(queue.Waiting, last)
	c.command(queue.OrderRetry, members[1])
	c.heldBy(last, queue.HoldDependency)
	c.succeeds(c.claimOne())
	c.started(5, last)
	c.command(queue.OrderRetry, members[3]) // too late: the successor runs
	c.is(queue.Running, last)
	c.succeeds(c.task(last))
}

func batchGrows(c *trial) {
	id := c.ids.New(c.now)
	c.add(queue.Options{Batch: id})
	last := c.add(queue.Options{AfterBatch: id})
	c.succeeds(c.claimOne())
	c.is(queue.Waiting, last)
	second := c.add(queue.Options{Batch: id, Queue: "other"})
	c.heldBy(last, queue.HoldDependency)
	c.command(queue.OrderCancel, second)
	c.command(queue.OrderForget, second)
	c.started(5, last)
}

func batchInOneCall(c *trial) {
	id := c.ids.New(c.now)
	ids := c.submit(queue.Options{AfterBatch: id}, queue.Options{Batch: id}, queue.Options{Batch: id})
	c.is(queue.Held, ids[0])
	for _, t := range c.started(5, ids[1:]...) {
		c.is(queue.Held, ids[0])
		c.succeeds(t)
	}
	c.started(5, ids[0])
}

func groupIsOneByOne(c *trial) {
	ids := c.several(3, queue.Options{Group: "g"})
	c.heldBy(ids[1], queue.HoldGroup)
	if h := c.task(ids[1]).Holds[0]; h.What != "g" || h.State != queue.Waiting {
		c.Errorf("it is held by %+v", h)
	}
	high := c.add(queue.Options{Group: "g", Tier: stint.Highest}) // a higher tier does not change the order of a group
	for _, id := range append(ids, high) {
		c.started(5, id)
		c.started(5)
		c.succeeds(c.task(id))
	}
}

func groupThroughRetries(c *trial) {
	ids := c.several(2, queue.Options{Group: "g", MaxAttempts: 2})
	c.fails(c.claimOne(), queue.Outcome{RunAt: c.now.Add(time.Hour)})
	c.heldBy(ids[1], queue.HoldGroup)
	c.pass(time.Hour)
	c.maintain()
	c.releases(c.claimOne())
	c.heldBy(ids[1], queue.HoldGroup)
	c.started(2, ids[0])
	c.expireLeases()
	c.heldBy(ids[1], queue.HoldGroup)
	c.command(queue.OrderPause, ids[0])
	c.heldBy(ids[1], queue.HoldGroup)
	c.command(queue.OrderResume, ids[0])
	c.fails(c.claimOne(), queue.Outcome{})
	c.is(queue.Dead, ids[0])
	c.started(2, ids[1])
}

func groupAndFinished(c *trial) {
	ids := c.several(4, queue.Options{Group: "g"})
	c.command(queue.OrderCancel, ids[1]) // neither first nor last
	c.is(queue.Held, ids[2])
	c.command(queue.OrderCancel, ids[0])
	c.is(queue.Waiting, ids[2])
	c.command(queue.OrderForget, ids[0], ids[1])
	c.succeeds(c.claimOne())
	c.started(5, ids[3])
	later := c.add(queue.Options{Group: "g", Deadline: c.now.Add(time.Second)})
	last := c.add(queue.Options{Group: "g"})
	c.succeeds(c.task(ids[3]))
	c.is(queue.Waiting, later)
	c.pass(time.Second)
	c.maintain()
	c.is(queue.Dead, later)
	c.started(5, last)
}

// groupAndRetried shows that a finished task that is retried goes before younger tasks of
// its group, but waits for one that runs.
func groupAndRetried(c *trial) {
	ids := c.several(3, queue.Options{Group: "g"})
	c.dies()
	c.command(queue.OrderRetry, ids[0])
	c.is(queue.Waiting, ids[0])
	c.heldBy(ids[1], queue.HoldGroup)
	c.dies()
	c.started(1, ids[1])
	c.command(queue.OrderRetry, ids[0])
	c.heldBy(ids[0], queue.HoldGroup)
	c.succeeds(c.task(ids[1]))
	c.started(5, ids[0])
	c.heldBy(ids[2], queue.HoldGroup)
}

func groupsAreIndependent(c *trial) {
	a := c.submit(queue.Options{Group: "a"}, queue.Options{Group: "a"})
	b := c.submit(queue.Options{Group: "b"}, queue.Options{}, queue.Options{})
	other := c.add(queue.Options{Queue: "other", Group: "a"})
	c.started(9, a[0], b[0], b[1], b[2])
	c.is(queue.Held, a[1])
	c.is(queue.Waiting, other)
}
