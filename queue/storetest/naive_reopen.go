package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

func (n *naive) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	for _, r := range n.local() {
		n.giveBack(r, queue.Step{On: queue.OnRelease, By: r.Lease.Worker, Token: r.Lease.Token})
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
	again.opening = true
	again.submits, again.endings, again.tokens = n.submits, n.endings, n.tokens
	for _, r := range n.uniques {
		again.uniques, again.now = append(again.uniques, r), later(again.now, r.Submitted)
	}
	again.settings, again.schedules = n.settings.clone(), maps.Clone(n.schedules)
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
		again.lost = append(again.lost, r)
	}
	n.shut()
	return again
}

// open does what waits for the first call: times in the rows that are later than it
// are moved back, leases that outlived the store begin anew, and those that did not
// were lost by now.
func (n *naive) open(now time.Time) {
	n.opening = false
	if back := n.now.Sub(now); back > 0 {
		for _, r := range slices.Concat(n.rows, n.uniques) {
			r.setBack(now, back)
		}
	} else {
		n.away = [2]time.Time{n.now, now}
	}
	n.now = now
	for _, r := range n.resumed {
		r.Lease.Until = n.now.Add(r.remote)
	}
	for _, r := range n.lost {
		for i := len(r.Steps) - 1; r.Steps[i].On != queue.OnClaim; i-- {
			r.Steps[i].At = n.now
		}
		r.Changed = n.now
	}
}

// setBack moves the times of a row back that are after from. What a step or an edit has
// set goes by the time of that step or edit.
func (r *row) setBack(from time.Time, back time.Duration) {
	corrected := func(t time.Time) time.Time {
		if t.After(from) {
			return t.Add(-back)
		}
		return t
	}
	runAt := r.Submitted // the time that RunAt goes by
	for i := range r.Steps {
		s := &r.Steps[i]
		switch s.On {
		case queue.OnFailure, queue.OnSnooze, queue.OnRetry:
			runAt = s.At
		default:
		}
	}
	if later(runAt, r.runAtEdited).After(from) && !r.RunAt.IsZero() {
		r.RunAt = r.RunAt.Add(-back)
	}
	if later(r.Submitted, r.deadlineEdited).After(from) && !r.Deadline.IsZero() {
		r.Deadline = r.Deadline.Add(-back)
	}
	r.runAtEdited, r.deadlineEdited = corrected(r.runAtEdited), corrected(r.deadlineEdited)
	r.Submitted = corrected(r.Submitted)
	last := r.Submitted
	for i := range r.Steps {
		r.Steps[i].At = later(last, corrected(r.Steps[i].At))
		last = r.Steps[i].At
	}
	r.Changed = last
	if r.State != queue.Scheduled && r.State != queue.Paused && r.RunAt.After(r.Changed) {
		r.RunAt = r.Changed // what was due stays so
	}
}
