package simulation_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// host is one process: what its calls of Run have together.
type host struct {
	w     *world
	name  string
	nodes []*node

	slots    stint.Scheduler
	limit    int
	listened map[string]int // how often somebody began to listen to a queue; guarded by the world's mutex
	paused   bool           // nothing has a slot of it
	guests   atomic.Int32   // what else of the program has slots, or waits for them

	skew    atomic.Int64 // of its clock, in nanoseconds
	ahead   atomic.Int64 // and of its clock on the wall
	stalled time.Time    // it does nothing until then
	killed  bool         // it does nothing any more
}

// newHost returns a process that does nothing yet.
func (w *world) newHost(limit int, cfg stint.Config) *host {
	h := &host{
		w: w, name: fmt.Sprintf("host%d", len(w.hosts)), limit: limit, slots: stint.New(limit, cfg),
		listened: make(map[string]int),
	}
	if w.calm { // all clocks go by the one that is ahead
		h.skew.Store(int64(w.plots.maxSkew))
		h.ahead.Store(int64(w.plots.maxAhead))
	}
	w.hosts = append(w.hosts, h)
	return h
}

// skewed is how far the clock is from the right time.
func (h *host) skewed() time.Duration { return time.Duration(h.skew.Load()) }

// wall is what the clock on the wall shows.
func (h *host) wall() time.Time { return h.w.now().Add(time.Duration(h.ahead.Load())).Round(0) }

// setWall has a Queue go by another clock on the wall than that of the system. No
// setting of it does so: nobody but a simulation wants to.
func setWall(q *queue.Queue, wall func() time.Time) {
	field := reflect.ValueOf(q).Elem().FieldByName("wall")
	*(*func() time.Time)(field.Addr().UnsafePointer()) = wall
}

// goesOn reports whether the process does.
func (h *host) goesOn() bool { return !h.killed && !h.stalled.After(h.w.now()) }

// kill ends the process as kill -9 would: nothing that it does is seen any more.
func (h *host) kill() {
	h.w.log("%s is killed", h.name)
	h.killed = true
}

// atWork is how many slots the handlers have that are at work.
func (h *host) atWork() (slots int) {
	for _, n := range h.nodes {
		slots += len(n.runs) * n.weight
	}
	return slots
}

// weightMost is how many slots the handlers take that take most.
func (h *host) weightMost() (most int) {
	for _, n := range h.nodes {
		most = max(most, n.weight)
	}
	return most
}

// startHost starts a process with slots that are shared: by one call of Run for each
// list of queues, and what else its program does.
func (w *world) startHost(kinds []string, limit int, lists ...[]string) {
	cfg := stint.Config{}
	normal := limit // may be in use, for those of the usual tier
	if limit > 1 && w.chance(3) {
		normal--
		cfg.Caps = stint.Caps{Normal: normal}
	}
	h := w.newHost(limit, cfg)
	w.log("%s starts with %d slots, %d for normal", h.name, limit, normal)
	for i, queues := range lists {
		var n *node
		if i > 0 && w.chance(2) {
			n = h.newNode(h.nodes[0].port)
		} else {
			n = h.newQueue(kinds)
		}
		n.most, n.weight = normal, 1
		as := h.slots
		if w.chance(3) {
			as, n.most = as.At(stint.High), limit
		}
		if n.most > 1 && w.chance(4) {
			n.weight = 2
		}
		n.start(as.Weight(n.weight), queues)
	}
}

// occupy has something else of the program use a slot for a while.
func (h *host) occupy(d time.Duration) {
	h.guests.Add(1)
	h.w.running.Go(func() {
		_, _ = stint.Run(h.w.ctx, h.slots, func(ctx context.Context) (struct{}, error) {
			h.w.wait(ctx, d)
			return struct{}{}, nil
		})
		h.guests.Add(-1)
	})
}

// pause has nothing start on the slots, or ends that.
func (h *host) pause(on bool) {
	h.w.log("the slots of %s are paused: %t", h.name, on)
	if h.paused = on; on {
		h.slots.Pause("operator")
	} else {
		h.slots.Resume()
	}
}

// quiet reports whether all has ended that had slots, or waited for them.
func (h *host) quiet() bool {
	busy := func(n *node) bool { return n.worker() && !n.ended || len(n.runs) > 0 }
	return h.guests.Load() == 0 && !slices.ContainsFunc(h.nodes, busy)
}
