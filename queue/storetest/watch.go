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
		{"C4_WatchTellsEveryChange", Config{}, watchTellsAll},
		{"C4_WatchSaysWhenItBegins", Config{}, watchBegins},
		{"C4_WatchKeepsTheOrder", Config{}, watchKeepsTheOrder},
		{"C4_WatchTellsWhatItMissed", Config{WatchBuffer: 16}, watchMissed},
		{"C4_WatcherMayUseTheStore", Config{}, watcherUsesTheStore},
		{"C4_WatchEnds", Config{}, watchEnds},
	}
}

// observer collects what a watcher is told.
type observer struct {
	events chan queue.Event
	ended  chan error
	stop   context.CancelFunc
}

// watch starts a watcher, and returns when it is told of changes. Each event goes to
// fn first, if there is one.
func (c *trial) watch(fn func(queue.Event)) *observer {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	c.Cleanup(cancel)
	const plenty = 1 << 16
	o := &observer{events: make(chan queue.Event, plenty), ended: make(chan error, 1), stop: cancel}
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
		c.Fatalf("Watch has ended: %v", err)
	case <-time.After(patience):
		c.Fatal("a watch does not begin")
	}
	return o
}

func (o *observer) next(t *testing.T) queue.Event {
	t.Helper()
	select {
	case e := <-o.events:
		return e
	case err := <-o.ended:
		t.Fatalf("Watch has ended: %v", err)
	case <-time.After(patience):
		t.Fatal("an event does not come")
	}
	panic("unreachable")
}

// same compares an event with a step, whatever the time zones.
func same(e queue.Event, s queue.Step) bool {
	at := e.At.Equal(s.At)
	e.At = s.At
	return at && e.Step == s
}

func watchTellsAll(c *trial) {
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
		e := o.next(c.T)
		if e.ID != id || e.Queue != "mail" || e.Kind != kind || e.From != from || e.Missed != 0 || !same(e, s) {
			c.Fatalf("event %d is %+v, from %s; the step is %+v, from %s", i, e, e.From, s, from)
		}
		from = s.To
	}
	c.command(queue.OrderForget, id)
	if e := o.next(c.T); e.ID != id || e.On != queue.OnForget || e.From != from || e.To != 0 {
		c.Errorf("that it was forgotten is told as %+v", e)
	}
}

// watchBegins shows that a watcher is told of the first change after it has heard
// that the watch has begun, whatever others do meanwhile, and of nothing before.
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
		told := false
		o := c.watch(func(e queue.Event) { told = told || e.ID == before && e.On == queue.OnSubmit })
		first := c.add(queue.Options{})
		e := o.next(c.T)
		if e.ID == before { // of the pause, if that came later than the watch
			e = o.next(c.T)
		}
		if changing.Wait(); e.ID != first || e.On != queue.OnSubmit {
			c.Errorf("the first change after a watch has begun is told as %+v", e)
		}
		o.stop()
		if err := <-o.ended; told {
			c.Errorf("a watcher is told of what was before it; it ends with %v", err)
		}
	}
	during := c.fresh(queue.Options{})
	ended, stop := context.WithTimeout(c.Context(), patience)
	defer stop()
	told := false
	err := c.Store.Watch(ended, func() {
		if _, err := c.Store.Submit(c.Context(), c.now, []queue.NewTask{during}); err != nil {
			c.Errorf("Submit: %v", err)
		}
	}, func(e queue.Event) {
		told = told || e.ID == during.ID
		stop()
	})
	if !told {
		c.Errorf("a watch that ends with %v does not tell of a change that was made when it had begun", err)
	}
	if err := c.Store.Watch(ended, func() {}, func(queue.Event) {}); err == nil {
		c.Error("a watch whose context has ended returns nil")
	}
	c.ok("Close", c.Store.Close())
	never := func() { c.Error("a watch of a store that is closed begins") }
	c.refused("Watch", c.Store.Watch(c.Context(), never, func(queue.Event) {}), queue.ErrClosed)
	c.closed = true
}

// watchKeepsTheOrder follows many tasks that are changed at the same time.
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
	for e := o.next(c.T); e.ID != end; e = o.next(c.T) {
		if e.From != states[e.ID] || !queue.Allowed(e.From, e.On, e.To) {
			c.Fatalf("%s from %s to %s is told of a task that is %s", e.On, e.From, e.To, states[e.ID])
		}
		states[e.ID], last[e.ID] = e.To, e.Step
	}
	for _, t := range c.find(queue.Filter{Queue: queue.DefaultQueue}) {
		if s := t.Steps[len(t.Steps)-1]; last[t.ID].To != s.To || last[t.ID].On != s.On {
			c.Fatalf("the last that is told of task %s is %+v; it was %+v", t.ID, last[t.ID], s)
		}
	}
}

// churn submits a task, claims some, and has them fail and succeed.
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
		c.submit(options...) // whoever is slow holds nobody up
	}
	close(release)
	told, missed := 0, 0
	for deadline := time.After(patience); told+missed < want; {
		select {
		case e := <-o.events:
			told, missed = told+1, missed+e.Missed
		case <-time.After(20 * time.Millisecond):
			c.add(queue.Options{}) // which brings the number of the last ones that were missed
			want++
		case <-deadline:
			c.Fatalf("of %d changes, %d are told and %d missed", want, told, missed)
		}
	}
	if told+missed != want || missed == 0 {
		c.Errorf("of %d changes, a watcher that is 16 behind at most is told %d, and that it missed %d", want, told, missed)
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
				c.Errorf("a watcher finds %d tasks", n)
			}
		case <-time.After(patience):
			c.Fatal("a watcher that uses the store does not come back")
		}
	}
}

func watchEnds(c *trial) {
	o := c.watch(nil)
	o.stop()
	select {
	case err := <-o.ended:
		c.refused("a watch whose context has ended", err, context.Canceled)
	case <-time.After(patience):
		c.Fatal("Watch does not end with its context")
	}
	c.add(queue.Options{})
	o = c.watch(nil)
	c.ok("Close", c.Store.Close())
	select {
	case err := <-o.ended:
		c.refused("a watch of a store that is closed", err, queue.ErrClosed)
	case <-time.After(patience):
		c.Fatal("Watch does not end with the store")
	}
	c.closed = true
}
