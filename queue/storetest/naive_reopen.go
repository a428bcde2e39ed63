package storetest

import (
	"maps"
	"slices"

	"github.com/stintgo/stint/queue"
)

func (n *naive) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	for _, r := range n.local() {
		n.giveBack(r, queue.Step{On: queue.OnGiveBack, By: r.Lease.Worker, Token: r.Lease.Token})
		n.revise()
	}
	n.shut()
	return nil
}

// shut ends all calls.
func (n *naive) shut() {
	n.closed = true
	for _, w := range n.watchers {
		w.wake()
	}
}

// local are the tasks that run in the process of the store.
func (n *naive) local() (rows []*row) {
	for _, r := range n.rows {
		if r.State == queue.Running && r.remote == 0 {
			rows = append(rows, r)
		}
	}
	return rows
}

// reopened returns a store that has what is left of one when its process ends, all
// of whose tasks are durable: not who worked for it, nor what rates have spent, nor
// who watched.
func (n *naive) reopened() *naive {
	n.mu.Lock()
	defer n.mu.Unlock()
	again := newNaive(n.cfg)
	again.submits, again.endings, again.tokens = n.submits, n.endings, n.tokens
	again.settings, again.schedules = maps.Clone(n.settings), maps.Clone(n.schedules)
	for _, r := range n.rows {
		own := *r
		own.Steps = slices.Clone(r.Steps)
		again.rows = append(again.rows, &own)
		again.queue(r.Queue)
		again.now = later(again.now, r.Changed)
		if r.State == queue.Running && r.remote > 0 {
			again.resumed = append(again.resumed, &own)
		}
	}
	for _, r := range again.resumed {
		r.Lease.Until = again.now.Add(r.remote)
	}
	for _, r := range again.local() {
		again.lose(r)
		again.revise()
	}
	n.shut()
	return again
}

// resume has the leases that outlived a store begin anew.
func (n *naive) resume() {
	for _, r := range n.resumed {
		r.Lease.Until = n.now.Add(r.remote)
	}
	n.resumed = nil
}
