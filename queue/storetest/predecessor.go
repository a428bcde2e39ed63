package storetest

import (
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func predecessorCases() []testCase {
	return []testCase{
		{"C12_CancellationPassesDownTheChain", Config{}, cascade},
		{"C12_AfterAny", Config{}, afterAny},
		{"C12_AfterAnyOfAnUnknownTask", Config{}, afterAnyRefused},
		{"C12_PredecessorsAreKept", Config{}, predecessorsAreKept},
	}
}

// cascade shows that the cancellation of a task whose predecessor is forgotten cancels the
// whole chain after it at once, except for tasks with AfterAny, and that a retry of one of
// these tasks revives that task alone.
func cascade(c *trial) {
	first := c.addInState(queue.Dead)
	chain := []queue.ID{c.add(queue.Options{After: []queue.ID{first}})}
	for range 80 {
		chain = append(chain, c.add(queue.Options{After: chain[len(chain)-1:]}))
	}
	anyway := c.addSpec(queue.Spec{Kind: "anyway", Options: queue.Options{AfterAny: chain[10:11]}})
	late := c.add(queue.Options{After: chain[20:21], RunAt: c.now.Add(time.Hour)})
	other := c.add(queue.Options{After: []queue.ID{c.add(queue.Options{Queue: "other"})}})
	c.is(queue.Held, chain...)
	if n := c.command(queue.OrderForget, first); n != 1 {
		c.Errorf("forgetting one task changes %d tasks", n)
	}
	c.is(queue.Cancelled, append(chain, late)...)
	c.is(queue.Waiting, anyway)
	c.is(queue.Held, other)
	again := func() {
		c.command(queue.OrderRetry, chain[0], chain[6])
		c.is(queue.Waiting, chain[0])
		c.is(queue.Held, chain[6])
		c.is(queue.Cancelled, chain[1], chain[5], chain[7])
	}
	if again(); c.Durable && c.crash() {
		c.is(queue.Waiting, chain[0], anyway)
		c.is(queue.Held, chain[6], other)
		c.is(queue.Cancelled, chain[1], chain[5], chain[7], late)
	}
}

// afterAny shows that a task starts after its AfterAny tasks have finished in any state,
// and waits again for one that is retried before it has started.
func afterAny(c *trial) {
	tasks := c.several(5, queue.Options{})
	last := c.addSpec(queue.Spec{Kind: "last", Options: queue.Options{AfterAny: tasks, Tier: stint.Highest}})
	c.heldBy(last, queue.HoldDependency)
	want := queue.Hold{Code: queue.HoldDependency, What: tasks[0].String(), State: queue.Waiting}
	if h := c.task(last).Holds; len(h) != len(tasks) || h[0] != want {
		c.Errorf("it is held by %+v, want %+v first", h, want)
	}
	c.succeeds(c.claimOne())
	c.dies()
	c.command(queue.OrderCancel, tasks[2])
	c.command(queue.OrderCancel, tasks[3])
	c.command(queue.OrderForget, tasks[3])
	c.heldBy(last, queue.HoldDependency)
	if h := c.task(last).Holds; len(h) != 1 || h[0].What != tasks[4].String() {
		c.Errorf("it is held by %+v", h)
	}
	c.fails(c.claimOne(), queue.Outcome{RunAt: c.now.Add(time.Minute)})
	c.is(queue.Held, last)
	c.command(queue.OrderCancel, tasks[4])
	c.is(queue.Waiting, last)
	c.command(queue.OrderRetry, tasks[1])
	c.heldBy(last, queue.HoldDependency)
	if c.Durable && c.crash() {
		c.heldBy(last, queue.HoldDependency)
	}
	c.succeeds(c.claimOne())
	c.is(queue.Waiting, last)
	if c.Durable && c.crash() {
		c.is(queue.Waiting, last)
	}
	c.claim(1, "last")
	c.command(queue.OrderRetry, tasks[2]) // too late: the successor runs
	c.is(queue.Running, last)
}

func afterAnyRefused(c *trial) {
	for _, t := range []queue.NewTask{
		c.fresh(queue.Options{AfterAny: []queue.ID{c.ids.New(c.now)}}),
		{ID: queue.ID{1}, Spec: queue.Spec{Kind: kind, Options: queue.Options{AfterAny: []queue.ID{{1}}}}},
	} {
		c.submitRefused("Submit of a task after an unknown one", queue.ErrInvalid, t)
	}
}

// predecessorsAreKept shows that retention keeps a finished task while an unfinished one
// comes after it, except a predecessor in After that has not succeeded, and that a purge
// forgets any task.
func predecessorsAreKept(c *trial) {
	c.configure(queue.Settings{
		Keep:     queue.Retention{Age: time.Hour, Count: 2},
		KeepDead: queue.Retention{Age: time.Hour},
	})
	succeeded, dead := c.addInState(queue.Succeeded), c.addInState(queue.Dead)
	purged, waited := c.addInState(queue.Cancelled), c.addInState(queue.Dead)
	after := queue.Options{After: []queue.ID{succeeded}, AfterAny: []queue.ID{dead, purged}}
	last := c.addSpec(queue.Spec{Kind: "last", Options: after})
	vain := c.add(queue.Options{After: []queue.ID{waited}})
	for range 5 {
		c.add(queue.Options{})
		c.succeeds(c.claimOne())
	}
	c.pass(2 * time.Hour)
	c.maintain()
	c.is(queue.Succeeded, succeeded)
	c.is(queue.Dead, dead)
	c.is(queue.Cancelled, purged, vain)
	c.gone(waited)
	c.command(queue.OrderForget, purged)
	c.gone(purged)
	if c.Durable && c.crash() {
		c.maintain()
		c.is(queue.Succeeded, succeeded)
		c.is(queue.Dead, dead)
	}
	c.command(queue.OrderRetry, dead)
	c.heldBy(last, queue.HoldDependency)
	c.fails(c.claim(1, c.task(dead).Kind)[0], queue.Outcome{Permanent: true})
	c.succeeds(c.claim(1, "last")[0])
	c.is(queue.Succeeded, last)
	c.pass(2 * time.Hour)
	c.maintain()
	c.gone(succeeded, dead, last)
}
