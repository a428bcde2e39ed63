package reference

import (
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Predecessors decides which tasks wait for other tasks.
type Predecessors struct{ tasks *Tasks }

// Waits returns the holds of a task that its steps record: its unfinished predecessors,
// and the task of its group that goes first.
func (p Predecessors) Waits(t *Task) (holds []queue.Hold) {
	for _, id := range t.After {
		// A predecessor that is gone has succeeded: others cancel their successors.
		if before := p.tasks.Get(id); before != nil && before.Seq < t.Seq && before.State != queue.Succeeded {
			holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: id.String(), State: before.State})
		}
	}
	for _, id := range t.AfterAny {
		if before := p.tasks.Get(id); before != nil && before.Seq < t.Seq && !before.State.Finished() {
			holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: id.String(), State: before.State})
		}
	}
	unfinished := func(other *Task) bool { return other.Batch == t.AfterBatch && !other.State.Finished() }
	if !t.AfterBatch.IsZero() && slices.ContainsFunc(p.tasks.all, unfinished) {
		holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: t.AfterBatch.String()})
	}
	if first := p.firstOfGroup(t); first != t {
		holds = append(holds, queue.Hold{Code: queue.HoldGroup, What: t.Group, State: first.State})
	}
	return holds
}

// firstOfGroup returns the task of t's group that runs, or else the oldest unfinished one;
// t itself if it has no group or is the oldest.
func (p Predecessors) firstOfGroup(t *Task) *Task {
	first := t
	if t.Group == "" {
		return t
	}
	for _, other := range p.tasks.all {
		switch {
		case other.Queue != t.Queue || other.Group != t.Group || other.State.Finished():
		case other.State == queue.Running:
			return other
		case other.Seq < first.Seq:
			first = other
		}
	}
	return first
}

// Pending returns the state of a task that is to start as soon as it may.
func (p Predecessors) Pending(now time.Time, t *Task) queue.State {
	switch {
	case t.RunAt.After(now):
		return queue.Scheduled
	case len(p.Waits(t)) > 0:
		return queue.Held
	default:
		return queue.Waiting
	}
}

// needed reports whether a finished task is kept because unfinished tasks come after it,
// none of which waits for a success that it does not have.
func (p Predecessors) needed(t *Task) (needed bool) {
	for _, other := range p.tasks.all {
		if other.State.Finished() || other.Seq < t.Seq {
			continue
		}
		after := slices.Contains(other.After, t.ID)
		if after && t.State != queue.Succeeded {
			return false
		}
		needed = needed || after || slices.Contains(other.AfterAny, t.ID)
	}
	return needed
}
