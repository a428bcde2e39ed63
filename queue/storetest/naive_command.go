package storetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

func (n *naive) Command(_ context.Context, now time.Time, c queue.Command) (changed int, err error) {
	switch c.Do {
	case queue.OrderPause, queue.OrderResume, queue.OrderCancel, queue.OrderRetry, queue.OrderForget, queue.OrderEdit:
	default:
		return 0, fmt.Errorf("%w: nobody can tell tasks to %s", queue.ErrInvalid, c.Do)
	}
	if err := cmp.Or(c.Validate(), validEdit(&c)); err != nil {
		return 0, err
	}
	end, err := n.begin(now)
	if err != nil {
		return 0, err
	}
	defer end()
	// What a command changes must not decide whom else it reaches. So of those that
	// are to be forgotten, all were finished before.
	found := n.matching(c.Filter)
	if c.Do == queue.OrderForget {
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
	s := queue.Step{On: c.Do.Trigger(), By: c.By, Detail: c.Reason}
	switch {
	case r.State == queue.Running:
		return n.order(r, c)
	case !slices.ContainsFunc(queue.Transitions(), func(line queue.Transition) bool {
		return line.From == r.State && line.On == c.Do.Trigger()
	}):
		return false
	case c.Do == queue.OrderPause:
		n.step(r, queue.Paused, s)
	case c.Do == queue.OrderCancel:
		n.step(r, queue.Cancelled, s)
	case c.Do == queue.OrderResume:
		n.step(r, n.pending(r), s)
	case c.Do == queue.OrderRetry:
		n.retry(r, s)
	case c.Do == queue.OrderEdit:
		return n.edit(r, c.Edit, s)
	default:
		n.forget(r, s)
	}
	return true
}

// edit applies an edit to a task, unless that would make the task invalid.
func (n *naive) edit(r *row, e *queue.Edit, s queue.Step) bool {
	is := r.Spec
	is.Labels = maps.Clone(is.Labels)
	for name, value := range e.Labels {
		if is.Labels == nil {
			is.Labels = make(map[string]string)
		}
		is.Labels[name] = value
	}
	is.Tier, is.Key = orOld(e.Tier, is.Tier), orOld(e.Key, is.Key)
	is.RunAt, is.Deadline = orOld(e.RunAt, is.RunAt), orOld(e.Deadline, is.Deadline)
	timed := (e.RunAt != nil || e.Deadline != nil) && !is.RunAt.IsZero() && !is.Deadline.IsZero()
	const mostLabels = 32
	if timed && !is.Deadline.After(is.RunAt) || len(is.Labels) > mostLabels {
		return false
	}
	r.Spec = is
	if e.RunAt != nil {
		r.runAtEdited = n.now
	}
	if e.Deadline != nil {
		r.deadlineEdited = n.now
	}
	if r.State == queue.Paused {
		n.step(r, queue.Paused, s)
	} else {
		n.step(r, n.pending(r), s)
	}
	return true
}

func orOld[T any](edited *T, old T) T {
	if edited == nil {
		return old
	}
	return *edited
}

func validEdit(c *queue.Command) error {
	e := c.Edit
	if (c.Do == queue.OrderEdit) != (e != nil) {
		return fmt.Errorf("%w: to %s with the edit %v", queue.ErrInvalid, c.Do, e)
	}
	if e == nil {
		return nil
	}
	names := slices.Collect(maps.Values(e.Labels))
	if e.Key != nil {
		names = append(names, *e.Key)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	names = slices.AppendSeq(names, maps.Keys(e.Labels))
	changes := e.Tier != nil || e.Key != nil || e.RunAt != nil || e.Deadline != nil || len(e.Labels) > 0
	if !changes || e.Tier != nil && !e.Tier.Valid() || slices.ContainsFunc(names, invalidName) {
		return fmt.Errorf("%w: the edit %+v", queue.ErrInvalid, *e)
	}
	return nil
}

// order tells the worker of a running task what to do. A cancel cannot be taken
// back, or be made less.
func (n *naive) order(r *row, c queue.Command) bool {
	switch {
	case c.Do == queue.OrderPause && r.Order == 0, c.Do == queue.OrderCancel && r.Order != queue.OrderCancel:
		r.Order, r.orderBy, r.orderWhy = c.Do, c.By, c.Reason
		return true
	case c.Do == queue.OrderResume && r.Order == queue.OrderPause:
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
	if r.State != queue.Succeeded {
		n.orphan(r, s.By, "was forgotten")
	}
}

// orphan cancels the tasks that come after one that will not succeed, and those that
// come after these.
func (n *naive) orphan(r *row, by, why string) {
	for _, other := range n.rows {
		if other.State.Pending() && r.seq < other.seq && slices.Contains(other.After, r.ID) {
			n.step(other, queue.Cancelled, queue.Step{
				On: queue.OnCancel, By: by, Detail: fmt.Sprintf("task %s, which has to succeed first, %s", r.ID, why),
			})
			n.orphan(other, by, "was cancelled with the task before it")
		}
	}
}
