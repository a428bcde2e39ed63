package simulation_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// hooks is the checker's record of the hooks of one call of Run.
type hooks struct {
	watches int // watches that the store has begun for them
	live    int // watches that have not ended
	from    int // the index of the event with which the last watch began

	delivered int              // events up to the last one that OnEvent has received
	owed      int              // events up to the last one that OnEvent must receive
	letters   map[queue.ID]int // dead letters that OnDead must receive, by the index of the event
}

// both is the number of watches when both hooks are set.
const both = 2

// Watch is a watch of a hook. Events that the store has not sent before it crashes are
// lost.
func (p *port) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error { //nolint:contextcheck // of two
	n := p.by(ctx)
	w := n.w
	w.mu.Lock()
	n.hooks.watches++
	name := fmt.Sprint("watch ", n.hooks.watches)
	w.mu.Unlock()
	if w.gate.pass(ctx, n, name) == over {
		return queue.ErrClosed
	}
	store, gone := w.store, w.gone
	if store == nil {
		return queue.ErrUnavailable
	}
	ctx, stop := context.WithCancel(ctx)
	defer context.AfterFunc(gone, stop)() //nolint:contextcheck // the context of the store
	w.note(func() { w.checker.watches(n) })
	err := store.Watch(ctx, begun, func(e queue.Event) {
		if gone.Err() == nil {
			e.At = moved(e.At, -n.skewed())
			fn(e)
		}
	})
	if w.gate.turn(ctx, n, name+" ends") == over { // so that two watches do not begin again at the same time
		return queue.ErrClosed
	}
	if gone.Err() != nil {
		err = queue.ErrUnavailable
	}
	return err
}

// onEvent is the hook OnEvent. At times it is slow or panics.
func (p *port) onEvent(ctx context.Context, e queue.Event) {
	n := p.by(ctx)
	n.w.note(func() { n.w.checker.delivered(n, &e) })
	switch e.Token % 16 {
	case 3:
		n.w.wait(ctx, 30*time.Millisecond)
	case 5:
		panic("the hook panics")
	default:
	}
}

// onDead is the hook OnDead.
func (p *port) onDead(ctx context.Context, t queue.Task) {
	n := p.by(ctx)
	n.w.note(func() { n.w.checker.deadDelivered(n, &t) })
	n.w.wait(ctx, 10*time.Millisecond)
}

// watches records a watch that begins. Earlier events are not delivered to the first
// watch.
func (ch *checker) watches(n *node) {
	n.hooks.from = len(ch.events)
	if n.hooks.live++; n.hooks.live == 1 {
		n.hooks.delivered = n.hooks.from
	}
}

// deaf ends all watches.
func (ch *checker) deaf() {
	for _, n := range ch.w.nodes {
		n.hooks.live, n.hooks.owed = 0, 0
		clear(n.hooks.letters)
	}
}

// notifies records which hooks must receive the events of a call.
func (ch *checker) notifies(c *call, events []queue.Event) {
	for i := range events {
		e := &events[i]
		ch.events = append(ch.events, *e)
		for _, n := range ch.w.nodes {
			if n.ended || n.hooks.live < both || !n.runsQueue(e.Queue) {
				continue
			}
			its := c.name == "Settle" && c.author == n // Run delivers these before it returns
			if its {
				n.hooks.owed = len(ch.events)
			}
			if e.To == queue.Dead && (its || !n.stopping) {
				n.hooks.letters[e.ID] = len(ch.events)
			}
		}
	}
}

// delivered checks an event that OnEvent receives: the next one of the node's queues, unless
// a watch has begun after that one.
func (ch *checker) delivered(n *node, e *queue.Event) {
	if n.killed {
		return
	}
	if e.Missed > 0 {
		ch.broken(ch.lives[e.ID], "%s misses %d events", n.name, e.Missed)
	}
	if n.hooks.delivered < n.hooks.from && ch.at(n, e) >= n.hooks.from {
		n.hooks.delivered = n.hooks.from // not an equal event before
	}
	for n.hooks.delivered < len(ch.events) {
		next := ch.events[n.hooks.delivered]
		next.At = e.At // by the clock of the process
		n.hooks.delivered++
		switch {
		case next == *e:
			if !n.runsQueue(e.Queue) {
				ch.broken(ch.lives[e.ID], "%s receives %s of queue %s", n.name, e.On, e.Queue)
			}
			return
		case n.runsQueue(next.Queue) && n.hooks.delivered > n.hooks.from:
			ch.broken(ch.lives[next.ID], "%s misses %s, and receives a later event: %+v", n.name, next.On, e)
			return
		}
	}
	ch.broken(ch.lives[e.ID], "%s receives %s, which has not happened, or receives it twice", n.name, e.On)
}

// at returns the index of an event, or -1 if the node's clock has been set since and the
// event cannot be identified.
func (ch *checker) at(n *node, e *queue.Event) int {
	was := *e
	was.At = moved(e.At, n.skewed())
	return slices.Index(ch.events, was)
}

// deadDelivered checks a dead letter that OnDead receives.
func (ch *checker) deadDelivered(n *node, t *queue.Task) {
	if n.killed {
		return
	}
	if t.State != queue.Dead || !n.runsQueue(t.Queue) {
		ch.broken(ch.lives[t.ID], "%s receives a dead letter of queue %s that is %s", n.name, t.Queue, t.State)
	}
	delete(n.hooks.letters, t.ID)
}

// lookedUp removes a dead letter from those that OnDead must receive, if the lookup found
// that it is no longer dead or failed.
func (n *node) lookedUp(c *call, id queue.ID) {
	found, _ := c.answer.([]queue.Task)
	if c.err != nil || c.lost || len(found) == 0 || found[0].State != queue.Dead {
		delete(n.hooks.letters, id)
	}
}

// hooksEnd checks the hooks of a call of Run that has returned. If returning took long,
// their contexts have ended.
func (ch *checker) hooksEnd(n *node) {
	if ch.w.now().Sub(n.stopped) > ch.w.grace {
		return
	}
	if h := &n.hooks; h.delivered < h.owed {
		e := &ch.events[h.owed-1]
		ch.broken(ch.lives[e.ID], "%s has stopped, and OnEvent has not received %s", n.name, e.On)
	}
	for id := range n.hooks.letters {
		ch.broken(ch.lives[id], "%s has stopped, and OnDead has not received a dead letter", n.name)
	}
}
