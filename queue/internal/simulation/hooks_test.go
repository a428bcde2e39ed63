package simulation_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// hooks are what the judge knows of the hooks of one call of Run.
type hooks struct {
	watches int // that the store has begun for them,
	live    int // and that have not broken off
	from    int // the event with which the last one began

	heard   int              // events up to the last one that OnEvent was told of
	owed    int              // and up to the last one of those that it has to be told of
	letters map[queue.ID]int // dead letters that OnDead has to be told of, by the number of the event
}

// both is how many watches there are when both hooks listen.
const both = 2

// Watch is a watch of a hook. What the store has not told before it crashes is
// never told.
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
	defer context.AfterFunc(gone, stop)() //nolint:contextcheck // that of the store
	w.note(func() { w.judge.watches(n) })
	err := store.Watch(ctx, begun, func(e queue.Event) {
		if gone.Err() == nil {
			e.At = moved(e.At, -n.skewed())
			fn(e)
		}
	})
	if w.gate.turn(ctx, n, name+" ends") == over { // so that two do not begin again at the same time
		return queue.ErrClosed
	}
	if gone.Err() != nil {
		err = queue.ErrUnavailable
	}
	return err
}

// onEvent is a hook. It is slow at times, and panics.
func (p *port) onEvent(ctx context.Context, e queue.Event) {
	n := p.by(ctx)
	n.w.note(func() { n.w.judge.heard(n, &e) })
	switch e.Token % 16 {
	case 3:
		n.w.wait(ctx, 30*time.Millisecond)
	case 5:
		panic("the hook panics")
	default:
	}
}

// onDead is the other one.
func (p *port) onDead(ctx context.Context, t queue.Task) {
	n := p.by(ctx)
	n.w.note(func() { n.w.judge.toldDead(n, &t) })
	n.w.wait(ctx, 10*time.Millisecond)
}

// watches is a watch that begins. Nothing is heard of what was before the first of
// them.
func (j *judge) watches(n *node) {
	n.hooks.from = len(j.told)
	if n.hooks.live++; n.hooks.live == 1 {
		n.hooks.heard = n.hooks.from
	}
}

// deaf has all watches break off.
func (j *judge) deaf() {
	for _, n := range j.w.nodes {
		n.hooks.live, n.hooks.owed = 0, 0
		clear(n.hooks.letters)
	}
}

// tells notes what hooks are to be told of a call's events.
func (j *judge) tells(c *call, events []queue.Event) {
	for i := range events {
		e := &events[i]
		j.told = append(j.told, *e)
		for _, n := range j.w.nodes {
			if n.ended || n.hooks.live < both || !n.runsQueue(e.Queue) {
				continue
			}
			its := c.name == "Settle" && c.who == n // of which Run has them told before it returns
			if its {
				n.hooks.owed = len(j.told)
			}
			if e.To == queue.Dead && (its || !n.stopping) {
				n.hooks.letters[e.ID] = len(j.told)
			}
		}
	}
}

// heard is an event that OnEvent is told of: the next of the node's queues, unless
// a watch has begun after that.
func (j *judge) heard(n *node, e *queue.Event) {
	if n.killed {
		return
	}
	if e.Missed > 0 {
		j.broken(j.lives[e.ID], "%s misses %d events", n.name, e.Missed)
	}
	if n.hooks.heard < n.hooks.from && j.at(n, e) >= n.hooks.from {
		n.hooks.heard = n.hooks.from // and not one that was like it, before
	}
	for n.hooks.heard < len(j.told) {
		next := j.told[n.hooks.heard]
		next.At = e.At // by the clock of the process
		n.hooks.heard++
		switch {
		case next == *e:
			if !n.runsQueue(e.Queue) {
				j.broken(j.lives[e.ID], "%s is told of %s of queue %s", n.name, e.On, e.Queue)
			}
			return
		case n.runsQueue(next.Queue) && n.hooks.heard > n.hooks.from:
			j.broken(j.lives[next.ID], "%s is not told of %s, but of what comes later: %+v", n.name, next.On, e)
			return
		}
	}
	j.broken(j.lives[e.ID], "%s is told of %s, which has not happened, or for a second time", n.name, e.On)
}

// at is where an event is among all, if the clock of the node has not been set since;
// or else -1.
func (j *judge) at(n *node, e *queue.Event) int {
	was := *e
	was.At = moved(e.At, n.skewed())
	return slices.Index(j.told, was)
}

// toldDead is a dead letter that OnDead is told of.
func (j *judge) toldDead(n *node, t *queue.Task) {
	if n.killed {
		return
	}
	if t.State != queue.Dead || !n.runsQueue(t.Queue) {
		j.broken(j.lives[t.ID], "%s is told of a dead letter of queue %s, which is %s", n.name, t.Queue, t.State)
	}
	delete(n.hooks.letters, t.ID)
}

// lookedUp is the end of what a hook owes, if a dead letter that it has asked for is
// none any more or cannot be had.
func (n *node) lookedUp(c *call, id queue.ID) {
	found, _ := c.answer.([]queue.Task)
	if c.err != nil || c.lost || len(found) == 0 || found[0].State != queue.Dead {
		delete(n.hooks.letters, id)
	}
}

// hooksEnd looks at what the hooks of a call of Run have been told when it has
// returned. If that has taken long their contexts have ended.
func (j *judge) hooksEnd(n *node) {
	if j.w.now().Sub(n.stopped) > j.w.grace {
		return
	}
	if h := &n.hooks; h.heard < h.owed {
		e := &j.told[h.owed-1]
		j.broken(j.lives[e.ID], "%s has stopped, and OnEvent was not told of %s", n.name, e.On)
	}
	for id := range n.hooks.letters {
		j.broken(j.lives[id], "%s has stopped, and OnDead was not told of a dead letter", n.name)
	}
}
