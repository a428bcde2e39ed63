package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/queue"
)

// signalsOfTheTotal shows that a queue that was refused gets a signal when it may go
// on, whatever makes room.
func signalsOfTheTotal(c *trial) {
	c.limitAll(queue.Settings{Total: 1})
	c.backlogs(9, "a", "b")
	ready := c.listen("b")
	signals := func(what string, do func(t queue.Task)) {
		c.Helper()
		running := c.claimOf("a", 1)
		if len(running) != 1 {
			c.Fatalf("before %s %d tasks run", what, len(running))
		}
		if n := len(c.claimOf("b", 1)); n != 0 {
			c.Fatalf("before %s %d tasks are claimable", what, n)
		}
		drain(ready)
		do(running[0])
		c.hears(ready, what)
		b := c.claimOf("b", 1)
		if len(b) != 1 {
			c.Fatalf("after %s nothing is claimable", what)
		}
		c.succeeds(b[0])
		for _, t := range c.find(queue.Filter{States: []queue.State{queue.Running}}) {
			c.succeeds(t)
		}
		c.limitAll(queue.Settings{Total: 1})
	}
	signals("a success", c.succeeds)
	signals("a failure", func(t queue.Task) { c.fails(t, queue.Outcome{RunAt: c.now.Add(time.Hour)}) })
	signals("a release", func(t queue.Task) { c.ok("release", c.settle(t, queue.Outcome{Kind: queue.OutcomeRelease})) })
	signals("a lost lease", func(queue.Task) {
		c.pass(2 * lease)
		c.maintain()
	})
	signals("a raised total", func(queue.Task) { c.limitAll(queue.Settings{Total: 2}) })
	signals("a total that is unset", func(queue.Task) { c.limitAll(queue.Settings{}) })
}

// signalsOfTheTotalOfAKey shows the same of a key, whose tasks of all queues count.
func signalsOfTheTotalOfAKey(c *trial) {
	c.limitAll(queue.Settings{TotalPerKey: 1})
	for _, name := range []string{"a", "b", "c"} {
		c.several(2, queue.Options{Queue: name, Key: "k"})
	}
	all := []<-chan struct{}{c.listen("b"), c.listen("c")}
	running := c.claimOf("a", 9)
	for _, ready := range all {
		drain(ready)
	}
	c.succeeds(running[0])
	for _, ready := range all {
		c.hears(ready, "the end of a task of the key")
	}
	if n := len(c.claimOf("c", 9)); n != 1 {
		c.Errorf("%d tasks of the key start", n)
	}
}

// noWakeUpIsLostByTheTotal has workers of several queues share a total, who do nothing
// but what the contract says. One queue has a worker that was refused and comes back no
// more.
func noWakeUpIsLostByTheTotal(c *trial) {
	const tasks, total = 60, 2
	names := []string{"a", "b", "c", "d"}
	c.limitAll(queue.Settings{Total: total})
	c.backlogs(1, "first", "gone")
	first := c.claimOf("first", 1)
	c.backlogs(tasks, names...)
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	clock := &passing{start: c.now}
	var wg sync.WaitGroup
	for _, name := range names {
		wg.Go(func() { c.shareTotal(ctx, clock, name, tasks) })
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

// passing is a time that passes by a millisecond whenever somebody looks.
type passing struct {
	start  time.Time
	passed atomic.Int64 // nanoseconds
}

func (p *passing) now() time.Time {
	return p.start.Add(time.Duration(p.passed.Add(int64(time.Millisecond))))
}

// reach has a time come, as if all had waited for it.
func (p *passing) reach(t time.Time) {
	for to := int64(t.Sub(p.start)); ; {
		passed := p.passed.Load()
		if passed >= to || p.passed.CompareAndSwap(passed, to) {
			return
		}
	}
}

// shareTotal works tasks of a queue off: it claims until there is nothing, and then
// waits for a signal, or until the store has said to come back.
func (c *trial) shareTotal(ctx context.Context, clock *passing, name string, tasks int) {
	ready, stop := c.Store.Listen(name)
	defer stop()
	for done := 0; done < tasks; {
		claim := queue.Claim{Worker: "of " + name, Queue: name, Kinds: []string{kind}, Max: 3, Lease: lease}
		got, err := c.Store.Claim(ctx, clock.now(), claim)
		var outcomes []queue.Outcome
		for _, t := range got.Tasks {
			outcomes = append(outcomes, queue.Outcome{ID: t.ID, Token: t.Lease.Token, Kind: queue.OutcomeSuccess})
		}
		if done += len(outcomes); len(outcomes) > 0 {
			var answers []error
			answers, err = c.Store.Settle(ctx, clock.now(), outcomes)
			err = errors.Join(append(answers, err)...)
		}
		if err != nil {
			c.Errorf("after %d tasks: %v", done, err)
			return
		}
		if len(outcomes) > 0 {
			continue
		}
		if !got.Next.IsZero() {
			clock.reach(got.Next)
			continue
		}
		select {
		case <-ready:
		case <-ctx.Done():
			c.Errorf("the worker of queue %s waits for a signal, and has done %d of %d tasks", name, done, tasks)
			return
		}
	}
}
