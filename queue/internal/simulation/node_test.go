package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// node is one call of Run, or a client that only submits and commands.
type node struct {
	*host
	name string
	port *port
	q    *queue.Queue

	// Of a call of Run.
	queues []string
	kinds  []string
	weight int // slots that a handler takes
	most   int // the highest number of used slots of the process when a handler starts, its own included
	cancel context.CancelCauseFunc
	runs   map[leaseOf]*attempt // running handlers
	view   *view                // of its ticker

	hooks hooks

	begun    time.Time // when Run was called
	stopped  time.Time // when it was ordered to stop
	halted   time.Time // when it was ordered to return at once
	rested   time.Time // when the last handler returned
	stopping bool      // Run was ordered to return
	ended    bool      // Run has returned
}

type leaseOf struct {
	id    queue.ID
	token queue.Token
}

var errStop = errors.New("the node is to stop")

// newQueue returns a node with a Queue of its own.
func (h *host) newQueue(kinds []string) *node {
	w := h.w
	p := &port{Store: w.store, kinds: kinds}
	n := h.newNode(p)
	p.owner = n
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 0))
	cfg := queue.Config{Worker: n.name, Lease: w.lease, Poll: w.poll, Grace: w.grace, Random: rng.Uint64}
	if w.chance(3) {
		cfg.OnEvent, cfg.OnDead = p.onEvent, p.onDead
	}
	n.q = queue.New(p, cfg)
	setWall(n.q, h.wall)
	for _, kind := range kinds {
		queue.Kind[args](kind).Handle(n.q, p.handle)
	}
	return n
}

// newNode returns a node that uses a Queue, which it may share with other nodes.
func (h *host) newNode(p *port) *node {
	h.w.workers++
	n := &node{
		host: h, port: p, name: fmt.Sprintf("worker%d", h.w.workers), kinds: p.kinds, runs: make(map[leaseOf]*attempt),
		view: &view{busy: make(map[queue.ID]bool)}, hooks: hooks{letters: make(map[queue.ID]int)},
	}
	if p.owner != nil {
		n.q = p.owner.q
	}
	h.nodes = append(h.nodes, n)
	h.w.nodes = append(h.w.nodes, n)
	return n
}

// byNode is the key of the node in the contexts of all that a call of Run does.
type byNode struct{}

// by returns the author of a call: a call of Run, or the owner of the Queue.
func (p *port) by(ctx context.Context) *node {
	if n, ok := ctx.Value(byNode{}).(*node); ok {
		return n
	}
	return p.owner
}

// view returns the view of the author of a change of schedules.
func (p *port) view(ctx context.Context) *view {
	if v, ok := ctx.Value(byView{}).(*view); ok {
		return v
	}
	return p.by(ctx).view
}

// start calls Run of the node for some queues.
func (n *node) start(slots stint.Scheduler, queues []string) {
	n.queues = queues
	ctx, cancel := context.WithCancelCause(context.WithValue(n.w.ctx, byNode{}, n))
	n.cancel = cancel
	n.w.log("%s starts on %s: queues %v, kinds %v, %d slots for each, of %d; its Queue is that of %s",
		n.name, n.host.name, queues, n.kinds, n.weight, n.most, n.port.owner.name)
	n.w.running.Go(func() {
		n.w.gate.turn(n.w.ctx, n, "start") //nolint:contextcheck // the context of Run may end before
		n.begun = n.w.now()
		err := n.q.Run(ctx, slots, queues...)
		back := n.w.now()
		n.w.gate.turn(n.w.ctx, n, "stop") //nolint:contextcheck // the context of Run has ended
		n.w.note(func() { n.w.checker.stopped(n, err, back) })
	})
}

// worker reports whether the node is a call of Run.
func (n *node) worker() bool { return len(n.queues) > 0 }

// works reports whether the node claims tasks.
func (n *node) works() bool { return n.worker() && n.goesOn() && !n.stopping }

// runsQueue reports whether the node runs a queue.
func (n *node) runsQueue(name string) bool { return slices.Contains(n.queues, name) }

// knows reports whether the node handles a task.
func (n *node) knows(l *life) bool {
	return n.runsQueue(l.Queue) && slices.Contains(n.kinds, l.Kind)
}

// slotFree reports whether a handler of the node could start. One slot is reserved for a
// waiter that needs two.
func (n *node) slotFree() bool {
	st := n.slots.Stats()
	return !n.paused && st.Running < n.most && st.Running+n.weight <= n.limit && (st.Queued == 0 || n.weightMost() == 1)
}

// stop ends the context of Run.
func (n *node) stop() {
	n.w.log("%s is to stop", n.name)
	n.stopping, n.stopped = true, n.w.now()
	n.cancel(errStop)
}

// halt calls Halt, so that all calls of Run of the node's Queue return at once.
func (n *node) halt() {
	n.w.log("%s is to halt", n.name)
	for _, o := range n.nodes {
		if o.port != n.port || o.ended {
			continue
		}
		if o.halted = n.w.now(); !o.stopping {
			o.stopping, o.stopped = true, o.halted
		}
	}
	n.q.Halt()
}

// exit ends a process whose calls of Run have all returned.
func (n *node) exit() {
	for _, o := range n.nodes {
		if !o.ended {
			return
		}
	}
	n.kill()
}
