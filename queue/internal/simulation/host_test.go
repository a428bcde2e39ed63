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

// host is one process: what its calls of Run share.
type host struct {
	w     *world
	name  string
	nodes []*node

	slots    stint.Scheduler
	limit    int
	listened map[string]int // the number of calls of Listen by queue; guarded by the world's mutex
	paused   bool           // closed when no attempt has a slot
	guests   atomic.Int32   // other functions of the program that have or wait for slots

	skew    atomic.Int64 // the error of its clock, in nanoseconds
	ahead   atomic.Int64 // the error of its wall clock
	stalled time.Time    // it is stalled until then
	killed  bool         // it does nothing any more
}

// newHost returns a process that does nothing yet.
func (w *world) newHost(limit int, cfg stint.Config) *host {
	h := &host{
		w: w, name: fmt.Sprintf("host%d", len(w.hosts)), limit: limit, slots: stint.New(limit, cfg),
		listened: make(map[string]int),
	}
	if w.calm { // the clock that is ahead determines the time of the store
		h.skew.Store(int64(w.scenario.maxSkew))
		h.ahead.Store(int64(w.scenario.maxAhead))
	}
	w.hosts = append(w.hosts, h)
	return h
}

// skewed returns the error of the clock.
func (h *host) skewed() time.Duration { return time.Duration(h.skew.Load()) }

// wall returns the time of the wall clock.
func (h *host) wall() time.Time { return h.w.now().Add(time.Duration(h.ahead.Load())).Round(0) }

// setWall replaces the wall clock of a Queue. Queue has no setting for that, because only
// a simulation needs it.
func setWall(q *queue.Queue, wall func() time.Time) {
	field := reflect.ValueOf(q).Elem().FieldByName("wall")
	*(*func() time.Time)(field.Addr().UnsafePointer()) = wall
}

// goesOn reports whether the process runs: it is neither killed nor stalled.
func (h *host) goesOn() bool { return !h.killed && !h.stalled.After(h.w.now()) }

// kill ends the process as kill -9 does: nothing that it does has an effect any more.
func (h *host) kill() {
	h.w.log("%s is killed", h.name)
	h.killed = true
}

// atWork returns the number of slots of the running handlers.
func (h *host) atWork() (slots int) {
	for _, n := range h.nodes {
		slots += len(n.runs) * n.weight
	}
	return slots
}

// weightMost returns the number of slots of the heaviest handler.
func (h *host) weightMost() (most int) {
	for _, n := range h.nodes {
		most = max(most, n.weight)
	}
	return most
}

// startHost starts a process with shared slots: a call of Run for each list of queues,
// and the rest of its program.
func (w *world) startHost(kinds []string, limit int, lists ...[]string) {
	cfg := stint.Config{}
	normal := limit // the limit of the usual tier
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

// occupy makes another function of the program use a slot for d.
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

// pause pauses the slots, or resumes them.
func (h *host) pause(on bool) {
	h.w.log("the slots of %s are paused: %t", h.name, on)
	if h.paused = on; on {
		h.slots.Pause("operator")
	} else {
		h.slots.Resume()
	}
}

// quiet reports whether nothing has or waits for a slot.
func (h *host) quiet() bool {
	busy := func(n *node) bool { return n.worker() && !n.ended || len(n.runs) > 0 }
	return h.guests.Load() == 0 && !slices.ContainsFunc(h.nodes, busy)
}
