package storetest

import (
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// restartCases test what happens to leases and orders when a store ends and is reopened.
func restartCases() []testCase {
	return []testCase{
		{"C9_CrashingTheProcessIsCounted", Config{}, crashingIsCounted},
		{"C9_ClosingCountsNothing", Config{}, closingCountsNothing},
		{"C9_CrashesCountWithOrWithoutWrites", Config{}, crashesCountAlike},
		{"C6_RemoteLeasesOutliveACrash", Config{}, func(c *trial) { remoteLeases(c, c.crash) }},
		{"C6_RemoteLeasesOutliveClosing", Config{}, func(c *trial) { remoteLeases(c, c.closeAndReopen) }},
		{"C6_RemoteLeasesRunOut", Config{}, remoteLeasesRunOut},
		{"C4_OrdersAreObeyedByClosing", Config{}, ordersAreObeyedByClosing},
		{"C4_ClosingReleasesWhatWaits", Config{}, closingReleasesWhatWaits},
		{"C4_OrdersOutliveACrash", Config{}, ordersOutliveACrash},
		{"C4_OldestAfterACrash", Config{}, oldestAfterACrash},
	}
}

// crashingIsCounted shows that a task that crashes the only process of the queue becomes
// dead, and that the same work is dead when it is submitted again.
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
			c.Fatalf("after %d crashes it has %d crashes and %d failures", crashes, got.Crashes, got.Failures)
		}
		last := got.Steps[len(got.Steps)-1]
		if last.On != queue.OnLost || last.Token != t.Lease.Token || last.By != worker {
			c.Errorf("its last step is %+v", last)
		}
		late := c.settle(t, queue.Outcome{Kind: queue.OutcomeSuccess})
		c.refused("Settle with a lease of the process that ended", late, queue.ErrStale)
	}
	if t := c.task(id); t.State != queue.Dead || t.Error == "" {
		c.Errorf("after %d crashes it is %s with the error %q", attempts, t.State, t.Error)
	}
	again := c.addSpec(spec)
	if t := c.task(again); t.State != queue.Dead || !strings.Contains(t.Error, id.String()) {
		c.Errorf("the same work is %s; its error %q should name task %s", t.State, t.Error, id)
	}
	c.is(queue.Waiting, other)
}

func closingCountsNothing(c *trial) {
	ids := c.submit(queue.Options{}, queue.Options{})
	for range attempts + 1 {
		tasks := c.claim(2)
		if len(tasks) != 2 {
			c.Fatalf("%d of 2 tasks can be claimed", len(tasks))
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
				c.Fatalf("after Close the task is %s with %d crashes\n%s", got.State, got.Crashes, life(got))
			}
		}
		c.refused("Settle with a lease of the process that ended",
			c.settle(tasks[1], queue.Outcome{Kind: queue.OutcomeSuccess}), queue.ErrStale)
	}
	c.started(9, ids...)
}

// crashesCountAlike shows that a crash counts alike for a task whose checkpoint was written
// while it ran and for one that had an order. These writes survive a loss of power.
func crashesCountAlike(c *trial) {
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
			c.Errorf("after a crash the task is %s with %d crashes", t.State, t.Crashes)
		}
	}
}

// remoteLeases shows that the lease of a worker in another process outlives the end of the
// store.
func remoteLeases(c *trial, end func() bool) {
	ids := c.several(3, queue.Options{MaxCrashes: 1})
	saved, second, third := c.claimRemote(), c.claimRemote(), c.claimRemote()
	c.heartbeat(saved, queue.Heartbeat{Lease: lease, Checkpoint: []byte("saved")})
	c.pass(time.Hour) // no call ends a lease that has run out
	if !end() {
		return
	}
	running := []queue.Task{saved, second, third}
	if c.mayForgetClaims() {
		running = running[:1] // its checkpoint was written
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
			c.Errorf("a heartbeat after reopening returns %s", got.Stop)
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

// stillLeased checks that tasks run with the leases of their claims, and that no other
// worker can claim them.
func (c *trial) stillLeased(running []queue.Task) {
	c.Helper()
	for _, want := range running {
		t := c.task(want.ID)
		same := t.Lease.Token == want.Lease.Token && t.Lease.Worker == want.Lease.Worker
		if t.State != queue.Running || !same || t.Crashes != 0 {
			c.Fatalf("the task is %s with the lease %+v, want %+v", t.State, t.Lease, want.Lease)
		}
	}
	if n := len(c.find(queue.Filter{Worker: worker})); n != len(running) {
		c.Errorf("%d tasks are found by their worker, want %d", n, len(running))
	}
	if got := c.claim(9); len(got) != 0 && !c.PowerLoss {
		c.Errorf("%d tasks can be claimed that have leases", len(got))
	}
}

// remoteLeasesRunOut shows that after reopening a remote lease lasts for its length, from
// the first call on, and that the task runs again if its worker is gone.
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
		c.Errorf("after its lease the task is %s with %d crashes", got.State, got.Crashes)
	}
	c.refused("Settle after the lease", c.settle(t, queue.Outcome{Kind: queue.OutcomeSuccess}), queue.ErrStale)
	second := c.claimRemote()
	if !c.crash() {
		return
	}
	c.succeeds(second)
}

// ordersAreObeyedByClosing shows that a task that Close releases under an order goes to the
// state of the order, and that the step has its By and Reason.
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

// closingReleasesWhatWaits shows that tasks that wait for one that Close releases under an order to
// cancel may start then, also while the store is watched.
func closingReleasesWhatWaits(c *trial) {
	batch := c.ids.New(c.now)
	ids := c.submit(queue.Options{}, queue.Options{Batch: batch})
	waiting := c.submit(queue.Options{AfterAny: ids[:1]}, queue.Options{AfterBatch: batch})
	c.claim(2)
	c.command(queue.OrderCancel, ids...)
	c.watch(nil)
	if !c.closeAndReopen() {
		return
	}
	if c.Remote {
		c.expireLeases()
	}
	c.is(queue.Cancelled, ids...)
	c.is(queue.Waiting, waiting...)
}

// ordersOutliveACrash shows that after a crash an order reaches a worker in another
// process, and is carried out at once for a task whose worker crashed with the store.
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
		c.Errorf("a heartbeat returns %+v", got)
	}
	c.releases(there)
	c.obeyedOrder(queue.Cancelled, there.ID)
}

// obeyedOrder checks that an order of the operator brought a task into a state.
func (c *trial) obeyedOrder(want queue.State, id queue.ID) {
	c.Helper()
	c.is(want, id)
	t := c.task(id)
	if last := t.Steps[len(t.Steps)-1]; last.By != operator || last.Detail != "a reason" {
		c.Errorf("the By and Detail of its last step are not those of the order: %+v", last)
	}
}

// oldestAfterACrash shows that Oldest of Stats does not change by a crash.
func oldestAfterACrash(c *trial) {
	ids := c.several(3, queue.Options{})
	c.command(queue.OrderPause, ids[0])
	c.pass(time.Minute)
	c.command(queue.OrderResume, ids[0]) // the oldest task has waited the shortest time
	if !c.crash() {
		return
	}
	for _, id := range []queue.ID{ids[1], ids[2], ids[0]} {
		stats := c.stats()
		if got, want := stats.Queues[queue.DefaultQueue].Oldest, c.task(id).Changed; !got.Equal(want) {
			c.Errorf("the oldest task has waited since %v, want %v", got, want)
		}
		c.command(queue.OrderCancel, id)
	}
}
