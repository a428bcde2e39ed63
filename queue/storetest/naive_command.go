package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

func (n *naive) Command(_ context.Context, now time.Time, c queue.Command) (changed int, err error) {
	switch c.Do {
	case queue.OnPause, queue.OnResume, queue.OnCancel, queue.OnRetry, queue.OnForget:
	default:
		return 0, fmt.Errorf("%w: nobody can tell tasks to %s", queue.ErrInvalid, c.Do)
	}
	end, err := n.begin(now)
	if err != nil {
		return 0, err
	}
	defer end()
	// What a command changes must not decide whom else it reaches. So of those that
	// are to be forgotten, all were finished before.
	found := n.matching(c.Filter)
	if c.Do == queue.OnForget {
		found = slices.DeleteFunc(found, func(r *row) bool { return !r.State.Finished() })
	}
	for _, r := range found {
		if c.Limit > 0 && changed == c.Limit {
			break
		}
		if n.command(r, c) {
			changed++
			n.revise()
		}
	}
	n.signal()
	return changed, nil
}

// command does something to one task, and reports whether that made a difference.
func (n *naive) command(r *row, c queue.Command) bool {
	s := queue.Step{On: c.Do, By: c.By, Detail: c.Reason}
	switch {
	case r.State == queue.Running:
		return n.order(r, c)
	case !slices.ContainsFunc(queue.Transitions(), func(line queue.Transition) bool {
		return line.From == r.State && line.On == c.Do
	}):
		return false
	case c.Do == queue.OnPause:
		n.step(r, queue.Paused, s)
	case c.Do == queue.OnCancel:
		n.step(r, queue.Cancelled, s)
	case c.Do == queue.OnResume:
		n.step(r, n.pending(r), s)
	case c.Do == queue.OnRetry:
		n.retry(r, s)
	default:
		n.forget(r, s)
	}
	return true
}

// order tells the worker of a running task what to do. A cancel cannot be taken
// back, or be made less.
func (n *naive) order(r *row, c queue.Command) bool {
	switch {
	case c.Do == queue.OnPause && r.Order == 0, c.Do == queue.OnCancel && r.Order != queue.OnCancel:
		r.Order, r.orderBy, r.orderWhy = c.Do, c.By, c.Reason
		return true
	case c.Do == queue.OnResume && r.Order == queue.OnPause:
		r.Order = 0
		return true
	default:
		return false
	}
}

// retry has a task start as soon as it can. One that was finished begins anew.
func (n *naive) retry(r *row, s queue.Step) {
	r.RunAt = n.now
	if r.State.Finished() {
		r.Failures, r.Crashes = 0, 0
		if !r.Deadline.After(n.now) {
			r.Deadline = time.Time{} // or it would die of it at once
		}
	}
	n.step(r, n.pending(r), s)
}

// forget removes a finished task. Those that waited for it to succeed are
// cancelled, because it never will.
func (n *naive) forget(r *row, s queue.Step) {
	n.rows = slices.DeleteFunc(n.rows, func(other *row) bool { return other == r })
	s.At = n.now
	n.tell(queue.Event{ID: r.ID, Queue: r.Queue, Kind: r.Kind, From: r.State, Step: s})
	for _, other := range n.rows {
		waits := other.State.Pending() && r.seq < other.seq && slices.Contains(other.After, r.ID)
		if waits && r.State != queue.Succeeded {
			n.step(other, queue.Cancelled, queue.Step{
				On: queue.OnCancel, By: s.By, Detail: fmt.Sprintf("task %s, which has to succeed first, was forgotten", r.ID),
			})
		}
	}
}
