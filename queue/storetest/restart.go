package storetest

import (
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// What becomes of leases when a store ends, and is opened again.
func restartCases() []testCase {
	return []testCase{
		{"C9_CrashingTheProcessIsCounted", Config{}, crashingIsCounted},
		{"C9_ClosingCountsNothing", Config{}, closingCountsNothing},
		{"C9_OrderedAndSavedTasksAreCountedTheSame", Config{}, writtenTasksAreCountedTheSame},
		{"C6_RemoteLeasesOutliveACrash", Config{}, func(c *trial) { remoteLeases(c, c.crash) }},
		{"C6_RemoteLeasesOutliveClosing", Config{}, func(c *trial) { remoteLeases(c, c.closeAndReopen) }},
		{"C6_RemoteLeasesRunOut", Config{}, remoteLeasesRunOut},
		{"C4_OrdersAreObeyedByClosing", Config{}, ordersAreObeyedByClosing},
		{"C4_OrdersOutliveACrash", Config{}, ordersOutliveACrash},
		{"C4_OldestAfterACrash", Config{}, oldestAfterACrash},
	}
}

// crashingIsCounted shows that a task that takes the only process of the queue
// along with it is found out, and so is the same work.
func crashingIsCounted(c *trial) {
	spec := queue.Spec{Payload: []byte("poison")}
	id, other := c.addSpec(spec), c.addSpec(queue.Spec{Kind: "other"})
	for crashes := 1; crashes <= attempts; crashes++ {
		t := c.claimOne()
		if !c.crash() || c.mayForgetClaims() {
			return
		}
		if c.Remote {
			c.expireLeases()
		}
		got := c.task(id)
		if got.Crashes != crashes || got.Failures != 0 {
			c.Fatalf("after %d crashes it counts %d, and %d failures", crashes, got.Crashes, got.Failures)
		}
		last := got.Steps[len(got.Steps)-1]
		if last.On != queue.OnLost || last.Token != t.Lease.Token || last.By != worker {
			c.Errorf("its last step is %+v", last)
		}
		late := c.settle(t, queue.Outcome{Kind: queue.OutcomeSuccess})
		c.refused("a worker of the process that ended", late, queue.ErrStale)
	}
	if t := c.task(id); t.State != queue.Dead || t.Error == "" {
		c.Errorf("after %d crashes it is %s with the error %q", attempts, t.State, t.Error)
	}
	again := c.addSpec(spec)
	if t := c.task(again); t.State != queue.Dead || !strings.Contains(t.Error, id.String()) {
		c.Errorf("the same work is %s with the error %q, which is to name task %s", t.State, t.Error, id)
	}
	c.is(queue.Waiting, other)
}

func closingCountsNothing(c *trial) {
	ids := c.submit(queue.Options{}, queue.Options{})
	for range attempts + 1 {
		tasks := c.claim(2)
		if len(tasks) != 2 {
			c.Fatalf("of 2 tasks %d can be claimed", len(tasks))
		}
		// A heartbeat with a checkpoint writes the task to disk as running.
		c.heartbeat(tasks[0], queue.Heartbeat{Lease: lease, Checkpoint: []byte("saved")})
		if !c.closeAndReopen() {
			return
		}
		if c.Remote {
			if c.mayForgetClaims() {
				return
			}
			for _, t := range tasks {
				c.releases(t)
			}
			continue
		}
		for i, id := range ids {
			got := c.task(id)
			last := got.Steps[len(got.Steps)-1]
			back := last.On == queue.OnRelease && last.Token == tasks[i].Lease.Token
			if got.State != queue.Waiting || got.Crashes != 0 || !back {
				c.Fatalf("after closing the task is %s, and counts %d crashes\n%s", got.State, got.Crashes, life(got))
			}
		}
		c.refused("a worker of the process that ended",
			c.settle(tasks[1], queue.Outcome{Kind: queue.OutcomeSuccess}), queue.ErrStale)
	}
	c.started(9, ids...)
}

// writtenTasksAreCountedTheSame shows that it makes no difference whether anything
// was written down of a task while it ran. What is written is there also after the
// loss of power.
func writtenTasksAreCountedTheSame(c *trial) {
	ids := c.submit(queue.Options{}, queue.Options{})
	tasks := c.claim(2)
	c.heartbeat(tasks[0], queue.Heartbeat{Lease: lease, Checkpoint: []byte("saved")})
	c.command(queue.OrderPause, ids[1])
	c.command(queue.OrderResume, ids[1])
	if !c.crash() {
		return
	}
	if c.Remote {
		c.expireLeases()
	}
	for _, id := range ids {
		if t := c.task(id); t.State != queue.Waiting || t.Crashes != 1 {
			c.Errorf("after a crash the task is %s, and counts %d", t.State, t.Crashes)
		}
	}
}

// remoteLeases shows that a worker in another process need not notice that the
// store has ended.
func remoteLeases(c *trial, end func() bool) {
	ids := c.several(3, queue.Options{MaxCrashes: 1})
	saved, second, third := c.claimRemote(), c.claimRemote(), c.claimRemote()
	c.heartbeat(saved, queue.Heartbeat{Lease: lease, Checkpoint: []byte("saved")})
	c.pass(time.Hour) // nobody is there who could take a lease away
	if !end() {
		return
	}
	running := []queue.Task{saved, second, third}
	if c.mayForgetClaims() {
		running = running[:1] // whose row tells of it
	}
	for range 2 {
		c.stillLeased(running)
		if !end() {
			return
		}
	}
	c.stillLeased(running)
	c.pass(lease - 1)
	c.maintain()
	for _, t := range running {
		if got := c.heartbeat(t, queue.Heartbeat{Lease: lease}); got.Stop != 0 {
			c.Errorf("a heartbeat after the store was opened again is answered %s", got.Stop)
		}
		c.succeeds(t)
	}
	if !c.PowerLoss {
		c.is(queue.Succeeded, ids...)
	}
	if end() {
		c.is(queue.Succeeded, saved.ID)
	}
}

// leased checks that tasks run as they were claimed, and that nobody else gets
// them.
func (c *trial) stillLeased(running []queue.Task) {
	c.Helper()
	for _, want := range running {
		t := c.task(want.ID)
		same := t.Lease.Token == want.Lease.Token && t.Lease.Worker == want.Lease.Worker
		if t.State != queue.Running || !same || t.Crashes != 0 {
			c.Fatalf("the task is %s with the lease %+v, and was claimed with %+v", t.State, t.Lease, want.Lease)
		}
	}
	if n := len(c.find(queue.Filter{Worker: worker})); n != len(running) {
		c.Errorf("%d tasks are found by their worker, and not %d", n, len(running))
	}
	if got := c.claim(9); len(got) != 0 && !c.PowerLoss {
		c.Errorf("%d tasks can be claimed that others have", len(got))
	}
}

// remoteLeasesRunOut shows that they last for as long as they were claimed for from
// the opening on, and that tasks whose workers are gone run again then.
func remoteLeasesRunOut(c *trial) {
	id := c.add(queue.Options{})
	t := c.claimRemote()
	if !c.crash() || c.mayForgetClaims() {
		return
	}
	c.pass(time.Hour)
	c.maintain() // the first call
	c.pass(lease - 1)
	c.maintain()
	c.is(queue.Running, id)
	c.pass(1)
	c.maintain()
	if got := c.task(id); got.State != queue.Waiting || got.Crashes != 1 {
		c.Errorf("after its lease the task is %s, and counts %d crashes", got.State, got.Crashes)
	}
	c.refused("after its lease a worker", c.settle(t, queue.Outcome{Kind: queue.OutcomeSuccess}), queue.ErrStale)
	second := c.claimRemote()
	if !c.crash() {
		return
	}
	c.succeeds(second)
}

// ordersAreObeyedByClosing shows that a task which is given back under an order
// goes where that says, in the words of who gave it.
func ordersAreObeyedByClosing(c *trial) {
	ids := c.submit(queue.Options{}, queue.Options{})
	c.claim(2)
	c.command(queue.OrderPause, ids[0])
	c.command(queue.OrderCancel, ids[1])
	if !c.closeAndReopen() {
		return
	}
	if c.Remote {
		c.expireLeases()
	}
	c.obeyedOrder(queue.Paused, ids[0])
	c.obeyedOrder(queue.Cancelled, ids[1])
}

// ordersOutliveACrash shows that they are told to a worker in another process, and
// else are carried out.
func ordersOutliveACrash(c *trial) {
	ids := c.submit(queue.Options{}, queue.Options{})
	here := c.claimOne()
	there := c.claimRemote()
	c.command(queue.OrderCancel, ids...)
	if !c.crash() {
		return
	}
	if c.Remote {
		c.releases(here)
	}
	c.obeyedOrder(queue.Cancelled, here.ID)
	if got := c.heartbeat(there, queue.Heartbeat{}); got.Stop != queue.StopCancel || got.Reason != "a reason" {
		c.Errorf("the worker is told %+v", got)
	}
	c.releases(there)
	c.obeyedOrder(queue.Cancelled, there.ID)
}

// obeyed checks that a task is in a state because of an order of somebody.
func (c *trial) obeyedOrder(want queue.State, id queue.ID) {
	c.Helper()
	c.is(want, id)
	t := c.task(id)
	if last := t.Steps[len(t.Steps)-1]; last.By != operator || last.Detail != "a reason" {
		c.Errorf("its last step is %+v, and tells not who wanted it", last)
	}
}

// oldestAfterACrash shows that since when a task waits is since when it did.
func oldestAfterACrash(c *trial) {
	ids := c.several(3, queue.Options{})
	c.command(queue.OrderPause, ids[0])
	c.pass(time.Minute)
	c.command(queue.OrderResume, ids[0]) // the oldest task, and the one that has waited least
	if !c.crash() {
		return
	}
	for _, id := range []queue.ID{ids[1], ids[2], ids[0]} {
		stats := c.stats()
		if got, want := stats.Queues[queue.DefaultQueue].Oldest, c.task(id).Changed; !got.Equal(want) {
			c.Errorf("the oldest has waited since %v, want %v", got, want)
		}
		c.command(queue.OrderCancel, id)
	}
}
