package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// patience is how long a signal or an event may be on its way before a case
// gives up. It is for busy machines and far servers; no case waits for it if all
// is well.
const patience = 20 * time.Second

func signalCases() []testCase {
	return []testCase{
		{"C1_ReadyAfterWhatMakesClaimable", Config{}, readyAfter},
		{"C1_ReadyHoldsOneSignal", Config{}, readyHoldsOne},
		{"C1_NoWakeUpIsLost", Config{}, noWakeUpIsLost},
	}
}

// drain takes the signal that there may be.
func drain(ready <-chan struct{}) {
	select {
	case <-ready:
	default:
	}
}

// readyAfter shows that everything by which a task becomes claimable is followed
// by a signal.
func readyAfter(c *trial) {
	ready := c.Store.Ready("")
	signals := func(what string, do func()) {
		c.Helper()
		if n := len(c.claim(100, kind)); n != 0 {
			c.Fatalf("before %s, %d tasks are claimable", what, n)
		}
		drain(ready)
		do()
		select {
		case <-ready:
		case <-time.After(patience):
			c.Fatalf("%s gives no signal", what)
		}
		if len(c.claim(100, kind)) == 0 {
			c.Fatalf("after %s nothing is claimable", what)
		}
	}
	fromNow := func() time.Time { return c.now.Add(time.Second) }
	signals("a submit", func() { c.add(queue.Spec{Kind: kind}) })
	running := func() queue.Task { return c.find(queue.Filter{States: []queue.State{queue.Running}})[0] }
	signals("giving back", func() { c.ok("settle", c.settle(running(), queue.Outcome{On: queue.OnGiveBack})) })
	signals("a lost lease", c.lose)
	signals("a retry that is due", func() {
		c.fails(running(), queue.Outcome{RunAt: fromNow()})
		drain(ready)
		c.pass(time.Second)
		c.tend()
	})
	id := running().ID
	c.fails(running(), queue.Outcome{Permanent: true})
	signals("a retry by hand", func() { c.command(queue.OnRetry, id) })
	c.ok("settle", c.settle(running(), queue.Outcome{On: queue.OnGiveBack}))
	c.command(queue.OnPause, id)
	signals("a resume", func() { c.command(queue.OnResume, id) })
	next := c.submit(queue.Spec{After: []queue.ID{id}}, queue.Spec{After: []queue.ID{id}})
	signals("a dependency's success", func() { c.succeeds(running()) })
	c.configure(queue.Settings{Max: 2})
	c.several(3, queue.Spec{})
	signals("a success when as many ran as may", func() { c.succeeds(c.task(next[0])) })
	signals("a raised limit", func() { c.configure(queue.Settings{Max: 3}) })
	c.configure(queue.Settings{Paused: &queue.Pause{}})
	signals("the end of a pause", func() { c.configure(queue.Settings{}) })
}

func readyHoldsOne(c *trial) {
	ready := c.Store.Ready("mail")
	c.several(5, queue.Spec{Queue: "mail"})
	select {
	case <-ready:
	case <-time.After(patience):
		c.Fatal("there is no signal")
	}
	if cap(ready) != 1 {
		c.Errorf("the channel holds %d signals", cap(ready))
	}
	if c.Store.Ready("mail") != ready {
		c.Error("a queue has two channels, and a signal comes only by one")
	}
}

// noWakeUpIsLost runs workers that do nothing but what the contract says: claim
// until there is nothing, then wait for a signal.
func noWakeUpIsLost(c *trial) {
	const tasks, most = 300, 7
	c.configure(queue.Settings{Max: 2})
	ctx, cancel := context.WithTimeout(c.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		for range tasks {
			if _, err := c.Store.Submit(ctx, c.now, []queue.NewTask{c.fresh(queue.Spec{})}); err != nil {
				c.Errorf("Submit: %v", err)
			}
		}
	})
	done := 0
	for ready := c.Store.Ready(defaultQueue); done < tasks && ctx.Err() == nil; {
		got := c.claimed(queue.Claim{Max: most}).Tasks
		for _, t := range got {
			c.succeeds(t)
		}
		if done += len(got); len(got) == 0 {
			select {
			case <-ready:
			case <-ctx.Done():
			}
		}
	}
	wg.Wait()
	if done != tasks {
		c.Errorf("the worker waits for a signal, and has done %d of %d tasks", done, tasks)
	}
}
