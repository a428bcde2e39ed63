package reference

import (
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// command applies a command to one task, and reports whether that changes anything.
func (tr *transitions) command(now time.Time, t *Task, c *queue.Command) bool {
	s := queue.Step{On: c.Do.Trigger(), By: c.By, Detail: c.Reason}
	switch {
	case t.State == queue.Running:
		return t.Obey(c)
	case !slices.ContainsFunc(queue.Transitions(), func(line queue.Transition) bool {
		return line.From == t.State && line.On == c.Do.Trigger()
	}):
		return false
	case c.Do == queue.OrderPause:
		tr.step(now, t, queue.Paused, s)
	case c.Do == queue.OrderCancel:
		tr.step(now, t, queue.Cancelled, s)
	case c.Do == queue.OrderResume:
		tr.pending(now, t, s)
	case c.Do == queue.OrderRetry:
		t.Retry(now)
		tr.pending(now, t, s)
	case c.Do == queue.OrderEdit:
		return tr.edit(now, t, c.Edit, s)
	default:
		tr.forget(now, t, s, false)
	}
	return true
}

// edit applies an edit to a task, unless the edit would make the task invalid.
func (tr *transitions) edit(now time.Time, t *Task, e *queue.Edit, s queue.Step) bool {
	if !t.edit(now, e) {
		return false
	}
	if t.State == queue.Paused {
		tr.step(now, t, queue.Paused, s)
	} else {
		tr.pending(now, t, s)
	}
	return true
}

// edit changes the fields that an edit sets, and reports whether it may.
func (t *Task) edit(now time.Time, e *queue.Edit) bool {
	is := t.Spec
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
	t.Spec = is
	if e.RunAt != nil {
		t.runAtEdited = now
	}
	if e.Deadline != nil {
		t.deadlineEdited = now
	}
	return true
}

func orOld[T any](edited *T, old T) T {
	if edited == nil {
		return old
	}
	return *edited
}
