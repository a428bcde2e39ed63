package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

func watchCases() []testCase {
	return []testCase{
		{"C4_WatchReportsEveryChange", Config{}, watchReportsAll},
		{"C4_WatchReportsWhenItBegins", Config{}, watchBegins},
		{"C4_WatchKeepsTheOrder", Config{}, watchKeepsTheOrder},
		{"C4_WatchCountsMissedEvents", Config{WatchBuffer: 16}, watchMissed},
		{"C4_WatcherMayUseTheStore", Config{}, watcherUsesTheStore},
		{"C4_WatchEnds", Config{}, watchEnds},
	}
}

// observer collects the events of one Watch.
type observer struct {
	t      *testing.T
	events chan queue.Event
	ended  chan error
	stop   context.CancelFunc
}

// watch starts a Watch and returns when it has begun. Each event is passed to fn, if it
// is not nil, and then to the observer's channel.
func (c *trial) watch(fn func(queue.Event)) *observer {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	c.Cleanup(cancel)
	const plenty = 1 << 16
	o := &observer{t: c.T, events: make(chan queue.Event, plenty), ended: make(chan error, 1), stop: cancel}
	begun := make(chan struct{}, 1)
	go func() {
		o.ended <- c.Store.Watch(ctx, func() { begun <- struct{}{} }, func(e queue.Event) {
			if fn != nil {
				fn(e)
			}
			o.events <- e
		})
	}()
	select {
	case <-begun:
	case err := <-o.ended:
		c.Fatalf("Watch ended: %v", err)
	case <-time.After(patience):
		c.Fatal("Watch does not begin")
	}
	return o
}

// next waits for the next event.
func (o *observer) next() queue.Event {
	o.t.Helper()
	select {
	case e := <-o.events:
		return e
	case err := <-o.ended:
		o.t.Fatalf("Watch ended: %v", err)
	case <-time.After(patience):
		o.t.Fatal("no event arrives")
	}
	panic("unreachable")
}

// same reports whether an event has the given step, in any time zone.
func same(e queue.Event, s queue.Step) bool {
	at := e.At.Equal(s.At)
	e.At = s.At
	return at && e.Step == s
}

func watchReportsAll(c *trial) {
	o := c.watch(nil)
	id := c.add(queue.Options{MaxAttempts: 2, Queue: "mail", Key: "k"})
	mail := queue.Claim{Queue: "mail", Max: 1}
	c.fails(c.claimWith(mail).Tasks[0], queue.Outcome{RunAt: c.now.Add(time.Second)})
	c.pass(time.Second)
	c.maintain()
	c.command(queue.OrderPause, id)
	c.command(queue.OrderResume, id)
	c.claimWith(mail)
	c.expireLeases()
	c.fails(c.claimWith(mail).Tasks[0], queue.Outcome{})
	c.command(queue.OrderRetry, id)
	c.command(queue.OrderCancel, id)
	from := queue.State(0)
	for i, s := range c.task(id).Steps {
		e := o.next()
		if e.ID != id || e.Queue != "mail" || e.Kind != kind || e.From != from || e.Missed != 0 || !same(e, s) {
			c.Fatalf("event %d is %+v, from %s; the step is %+v, from %s", i, e, e.From, s, from)
		}
		from = s.To
	}
	c.command(queue.OrderForget, id)
	if e := o.next(); e.ID != id || e.On != queue.OnForget || e.From != from || e.To != 0 {
		c.Errorf("the event of a purge is %+v", e)
	}
}

// watchBegins shows that a Watch reports every change after it has called its begin
// function, and none that was made before the Watch was called, while other calls change
// tasks at the same time.
func watchBegins(c *trial) {
	for range 20 {
		before := c.add(queue.Options{})
		var changing sync.WaitGroup
		changing.Go(func() {
			pause := queue.Command{Do: queue.OrderPause, Filter: queue.Filter{IDs: []queue.ID{before}}}
			if _, err := c.Store.Command(c.Context(), c.now, pause); err != nil {
				c.Errorf("Command: %v", err)
			}
		})
		early := false
		o := c.watch(func(e queue.Event) { early = early || e.ID == before && e.On == queue.OnSubmit })
		first := c.add(queue.Options{})
		e := o.next()
		if e.ID == before { // the pause came after the watch had begun
			e = o.next()
		}
		if changing.Wait(); e.ID != first || e.On != queue.OnSubmit {
			c.Errorf("the event of the first change after Watch has begun is %+v", e)
		}
		o.stop()
		if err := <-o.ended; early {
			c.Errorf("Watch reports a change from before it began; it ends with %v", err)
		}
	}
	during := c.fresh(queue.Options{})
	ended, stop := context.WithTimeout(c.Context(), patience)
	defer stop()
	reported := false
	err := c.Store.Watch(ended, func() {
		if _, err := c.Store.Submit(c.Context(), c.now, []queue.NewTask{during}); err != nil {
			c.Errorf("Submit: %v", err)
		}
	}, func(e queue.Event) {
		reported = reported || e.ID == during.ID
		stop()
	})
	if !reported {
		c.Errorf("Watch, which ends with %v, does not report a change made from its begin function", err)
	}
	if err := c.Store.Watch(ended, func() {}, func(queue.Event) {}); err == nil {
		c.Error("Watch with a cancelled context returns nil")
	}
	c.ok("Close", c.Store.Close())
	never := func() { c.Error("Watch of a closed store begins") }
	c.refused("Watch", c.Store.Watch(c.Context(), never, func(queue.Event) {}), queue.ErrClosed)
	c.closed = true
}

// watchKeepsTheOrder checks that the events of each task arrive in the order of its
// transitions while many tasks change at the same time.
func watchKeepsTheOrder(c *trial) {
	o := c.watch(nil)
	const workers, each = 8, 20
	var wg sync.WaitGroup
	for i := range workers {
		wg.Go(func() {
			q := queue.Claim{Worker: fmt.Sprint("w", i), Queue: queue.DefaultQueue, Kinds: []string{kind}, Max: 2, Lease: lease}
			for range each {
				if err := c.churn(q); err != nil {
					c.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	states, last := make(map[queue.ID]queue.State), make(map[queue.ID]queue.Step)
	end := c.add(queue.Options{Queue: "end"})
	for e := o.next(); e.ID != end; e = o.next() {
		if e.From != states[e.ID] || !queue.Allowed(e.From, e.On, e.To) {
			c.Fatalf("the event %s from %s to %s is of a task that was %s", e.On, e.From, e.To, states[e.ID])
		}
		states[e.ID], last[e.ID] = e.To, e.Step
	}
	for _, t := range c.find(queue.Filter{Queue: queue.DefaultQueue}) {
		if s := t.Steps[len(t.Steps)-1]; last[t.ID].To != s.To || last[t.ID].On != s.On {
			c.Fatalf("the last event of task %s is %+v, want %+v", t.ID, last[t.ID], s)
		}
	}
}

// churn submits a task and claims tasks; it releases some of them and settles the others
// as successes.
func (c *trial) churn(q queue.Claim) error {
	ctx := c.Context()
	if _, err := c.Store.Submit(ctx, c.now, []queue.NewTask{c.fresh(queue.Options{})}); err != nil {
		return err
	}
	claimed, err := c.Store.Claim(ctx, c.now, q)
	if err != nil {
		return err
	}
	var outcomes []queue.Outcome
	for i, t := range claimed.Tasks {
		on := []queue.OutcomeKind{queue.OutcomeRelease, queue.OutcomeSuccess}[i%2]
		outcomes = append(outcomes, queue.Outcome{ID: t.ID, Token: t.Lease.Token, Kind: on})
	}
	answers, err := c.Store.Settle(ctx, c.now, outcomes)
	return errors.Join(append(answers, err)...)
}

func watchMissed(c *trial) {
	release := make(chan struct{})
	o := c.watch(func(queue.Event) { <-release })
	want := 1000
	options := make([]queue.Options, 100)
	for range want / len(options) {
		c.submit(options...) // a blocked watcher does not block callers
	}
	close(release)
	seen, missed := 0, 0
	for deadline := time.After(patience); seen+missed < want; {
		select {
		case e := <-o.events:
			seen, missed = seen+1, missed+e.Missed
		case <-time.After(20 * time.Millisecond):
			c.add(queue.Options{}) // its event has the number of events missed before it
			want++
		case <-deadline:
			c.Fatalf("of %d changes, %d are reported and %d missed", want, seen, missed)
		}
	}
	if seen+missed != want || missed == 0 {
		c.Errorf("of %d changes, a watcher with a buffer of 16 sees %d and misses %d", want, seen, missed)
	}
}

func watcherUsesTheStore(c *trial) {
	found := make(chan int, 10)
	c.watch(func(e queue.Event) {
		tasks, err := c.Store.Find(c.Context(), queue.Filter{IDs: []queue.ID{e.ID}}, queue.Page{})
		if err != nil {
			c.Errorf("Find: %v", err)
		}
		found <- len(tasks)
	})
	c.several(3, queue.Options{})
	for range 3 {
		select {
		case n := <-found:
			if n != 1 {
				c.Errorf("a watcher finds %d tasks, want 1", n)
			}
		case <-time.After(patience):
			c.Fatal("a watcher that uses the store blocks")
		}
	}
}

func watchEnds(c *trial) {
	o := c.watch(nil)
	o.stop()
	select {
	case err := <-o.ended:
		c.refused("Watch with a cancelled context", err, context.Canceled)
	case <-time.After(patience):
		c.Fatal("Watch does not end with its context")
	}
	c.add(queue.Options{})
	o = c.watch(nil)
	c.ok("Close", c.Store.Close())
	select {
	case err := <-o.ended:
		c.refused("Watch of a closed store", err, queue.ErrClosed)
	case <-time.After(patience):
		c.Fatal("Watch does not end with the store")
	}
	c.closed = true
}
