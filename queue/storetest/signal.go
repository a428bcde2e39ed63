package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

func signalCases() []testCase {
	return []testCase{
		{"C1_SignalAfterWhatMakesClaimable", Config{}, signalAfter},
		{"C1_ListenerHoldsOneSignal", Config{}, holdsOneSignal},
		{"C1_EveryListenerGetsSignals", Config{}, everyListener},
		{"C1_ListenersEnd", Config{}, listenersEnd},
		{"C1_ListenersComeAndGo", Config{}, listenersComeAndGo},
		{"C1_NoWakeUpIsLost", Config{}, noWakeUpIsLost},
	}
}

// signalAfter shows that every change that makes a task claimable sends a signal.
func signalAfter(c *trial) {
	l := c.listen("")
	signals := func(what string, do func()) {
		c.Helper()
		if n := len(c.claim(100, kind)); n != 0 {
			c.Fatalf("before %s, %d tasks can be claimed", what, n)
		}
		l.drain()
		do()
		l.await(what)
		if len(c.claim(100, kind)) == 0 {
			c.Fatalf("after %s no task can be claimed", what)
		}
	}
	fromNow := func() time.Time { return c.now.Add(time.Second) }
	signals("a submit", func() { c.addSpec(queue.Spec{Kind: kind}) })
	running := func() queue.Task { return c.find(queue.Filter{States: []queue.State{queue.Running}})[0] }
	signals("a release", func() { c.releases(running()) })
	signals("a lost lease", c.expireLeases)
	signals("a retry that is due", func() {
		c.fails(running(), queue.Outcome{RunAt: fromNow()})
		l.drain()
		c.pass(time.Second)
		c.maintain()
	})
	id := running().ID
	c.fails(running(), queue.Outcome{Permanent: true})
	signals("a retry by hand", func() { c.command(queue.OrderRetry, id) })
	c.releases(running())
	c.command(queue.OrderPause, id)
	signals("a resume", func() { c.command(queue.OrderResume, id) })
	next := c.submit(queue.Options{After: []queue.ID{id}}, queue.Options{After: []queue.ID{id}})
	signals("a dependency's success", func() { c.succeeds(running()) })
	c.configure(queue.Settings{Max: 2})
	c.several(3, queue.Options{})
	signals("a success at the limit", func() { c.succeeds(c.task(next[0])) })
	signals("a raised limit", func() { c.configure(queue.Settings{Max: 3}) })
	c.pause(queue.DefaultQueue, &queue.Pause{})
	c.configure(queue.Settings{})
	signals("the end of a pause", func() { c.pause(queue.DefaultQueue, nil) })
}

func holdsOneSignal(c *trial) {
	l := c.listen("mail")
	c.several(5, queue.Options{Queue: "mail"})
	l.await("five tasks")
	if cap(l.ready) != 1 {
		c.Errorf("the channel holds %d signals", cap(l.ready))
	}
}

// everyListener shows that each listener of a queue gets each signal, also if some name
// the queue "" and others [queue.DefaultQueue].
func everyListener(c *trial) {
	all := []*listener{c.listen(""), c.listen(queue.DefaultQueue), c.listen(queue.DefaultQueue)}
	for range 20 {
		for _, l := range all {
			l.drain()
		}
		c.add(queue.Options{})
		for _, l := range all {
			l.await("a task")
		}
	}
}

// listenersEnd shows that a stopped listener gets no signal, and that the remaining ones,
// down to the last, get every signal.
func listenersEnd(c *trial) {
	const name = "mail"
	var all []*listener
	for range 4 {
		all = append(all, c.listen(name))
	}
	for len(all) > 1 {
		i := len(all) / 2
		gone := all[i]
		all = slices.Delete(all, i, i+1)
		gone.stop()
		gone.stop() // stops no other listener
		gone.drain()
		for _, l := range all {
			l.drain()
		}
		c.add(queue.Options{Queue: name})
		for _, l := range all {
			l.await("a task")
		}
		gone.quiet("a stopped listener")
	}
	last := all[0]
	last.stop()
	last.drain()
	c.add(queue.Options{Queue: name})
	next := c.listen(name)
	c.add(queue.Options{Queue: name})
	next.await("a task")
	last.quiet("the last listener, which was stopped,")
	_, stop := c.Store.Listen("empty")
	stop()
	stats := c.stats()
	if _, there := stats.Queues["empty"]; there {
		c.Error("Stats has a queue that has only been listened to")
	}
}

// listenersComeAndGo starts and stops listeners while signals are sent. A listener that
// stays gets the signal for the last task.
func listenersComeAndGo(c *trial) {
	const tasks, others, each = 50, 8, 50
	l := c.listen("")
	var wg sync.WaitGroup
	for i := range others {
		wg.Go(func() {
			for n := range each {
				_, stop := c.Store.Listen([]string{"", fmt.Sprint("other-", i)}[n%2])
				stop()
			}
		})
	}
	for range tasks {
		c.add(queue.Options{})
	}
	wg.Wait()
	c.claim(tasks + 1)
	l.drain()
	c.add(queue.Options{})
	l.await("the last task")
}

// noWakeUpIsLost runs two processors that know different kinds, while tasks of both are
// submitted and a limit lets two run.
func noWakeUpIsLost(c *trial) {
	const tasks = 300
	c.configure(queue.Settings{Max: 2})
	clock := &stepClock{start: c.now}
	var wg sync.WaitGroup
	for _, kind := range []string{"a", "b"} {
		claim := queue.Claim{
			Worker: "of " + kind, Queue: queue.DefaultQueue, Kinds: []string{kind}, Max: 7, Lease: lease,
		}
		p := &processor{c, clock, claim, false}
		wg.Go(func() { p.run(tasks) })
	}
	for range tasks {
		for _, kind := range []string{"a", "b"} {
			if _, err := c.Store.Submit(c.Context(), c.now, []queue.NewTask{c.freshSpec(queue.Spec{Kind: kind})}); err != nil {
				c.Errorf("Submit: %v", err)
			}
		}
	}
	wg.Wait()
	c.now = clock.now()
}
