package storetest

import (
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// signalsOfTheTotal shows that a queue whose claim was refused at the total gets a signal
// after every change that makes room.
func signalsOfTheTotal(c *trial) {
	c.configureQueue("", queue.Settings{Total: 1})
	c.backlogs(9, "a", "b")
	l := c.listen("b")
	signals := func(what string, do func(t queue.Task)) {
		c.Helper()
		running := c.claimFrom("a", 1)
		if len(running) != 1 {
			c.Fatalf("before %s %d tasks run", what, len(running))
		}
		if n := len(c.claimFrom("b", 1)); n != 0 {
			c.Fatalf("before %s %d tasks of the other queue can be claimed", what, n)
		}
		l.drain()
		do(running[0])
		l.await(what)
		b := c.claimFrom("b", 1)
		if len(b) != 1 {
			c.Fatalf("after %s no task can be claimed", what)
		}
		c.succeeds(b[0])
		for _, t := range c.find(queue.Filter{States: []queue.State{queue.Running}}) {
			c.succeeds(t)
		}
		c.configureQueue("", queue.Settings{Total: 1})
	}
	signals("a success", c.succeeds)
	signals("a failure", func(t queue.Task) { c.fails(t, queue.Outcome{RunAt: c.now.Add(time.Hour)}) })
	signals("a release", func(t queue.Task) { c.releases(t) })
	signals("a lost lease", func(queue.Task) {
		c.pass(2 * lease)
		c.maintain()
	})
	signals("a raised total", func(queue.Task) { c.configureQueue("", queue.Settings{Total: 2}) })
	signals("a total that is unset", func(queue.Task) { c.configureQueue("", queue.Settings{}) })
}

// signalsOfTheTotalOfAKey shows the same for the total of a key over all queues.
func signalsOfTheTotalOfAKey(c *trial) {
	c.configureQueue("", queue.Settings{TotalPerKey: 1})
	for _, name := range []string{"a", "b", "c"} {
		c.several(2, queue.Options{Queue: name, Key: "k"})
	}
	all := []*listener{c.listen("b"), c.listen("c")}
	running := c.claimFrom("a", 9)
	for _, l := range all {
		l.drain()
	}
	c.succeeds(running[0])
	for _, l := range all {
		l.await("the end of a task of the key")
	}
	if n := len(c.claimFrom("c", 9)); n != 1 {
		c.Errorf("%d tasks of the key start", n)
	}
}

// noWakeUpIsLostByTheTotal runs processors of several queues that share a total. The
// worker of one more queue is refused once and never claims again.
func noWakeUpIsLostByTheTotal(c *trial) {
	const tasks, total = 60, 2
	names := []string{"a", "b", "c", "d"}
	c.configureQueue("", queue.Settings{Total: total})
	c.backlogs(1, "first", "gone")
	first := c.claimFrom("first", 1)
	c.backlogs(tasks, names...)
	ctx := c.Context()
	clock := &stepClock{start: c.now}
	var wg sync.WaitGroup
	for _, name := range names {
		claim := queue.Claim{Worker: "of " + name, Queue: name, Kinds: []string{kind}, Max: 3, Lease: lease}
		p := &processor{c, clock, claim, true}
		wg.Go(func() { p.run(tasks) })
	}
	claim := queue.Claim{Worker: "gone", Queue: "gone", Kinds: []string{kind}, Max: 1, Lease: lease}
	if _, err := c.Store.Claim(ctx, clock.now(), claim); err != nil {
		c.Errorf("Claim: %v", err)
	}
	for _, t := range first {
		outcome := queue.Outcome{ID: t.ID, Token: t.Lease.Token, Kind: queue.OutcomeSuccess}
		if _, err := c.Store.Settle(ctx, clock.now(), []queue.Outcome{outcome}); err != nil {
			c.Errorf("Settle: %v", err)
		}
	}
	wg.Wait()
	c.now = clock.now()
}
