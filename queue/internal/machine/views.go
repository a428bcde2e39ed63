package machine

import (
	"bytes"
	"maps"
	"math"
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// views makes the tasks in answers: copies that the caller of the store may change, with
// the public state. A task that only a limit or a pause holds is Waiting in memory, and
// its public state is Held. It changes nothing. The caller of each method holds the lock
// of the machine.
type views struct {
	deps      *dependencies
	keyTotals *keyTotals
	queues    *queueSet
}

// view returns a task as answers show it.
func (v *views) view(t *task, row *record.Row) queue.Task {
	task := row.Task
	if task.State != queue.Running {
		task.Lease = queue.Lease{}
	}
	// The row may share these with what is in memory, and the caller owns the task.
	task.Payload, task.Checkpoint = bytes.Clone(row.Payload), bytes.Clone(row.Checkpoint)
	task.Result = bytes.Clone(row.Result)
	if t.state == queue.Running { // the row stays in its lease
		task.Steps, task.After, task.AfterAny = slices.Clone(row.Steps), slices.Clone(row.After), slices.Clone(row.AfterAny)
		task.Labels = maps.Clone(row.Labels)
	}
	task.State = v.stateOf(t)
	if task.State == queue.Held {
		task.Holds = v.holdsOf(t, row)
	}
	if l := t.leased(); l != nil {
		task.Order = l.order
	}
	return task
}

// stateOf returns the public state of a task.
func (v *views) stateOf(t *task) queue.State {
	if t.state == queue.Waiting && v.queues.of(t).held(t) {
		return queue.Held
	}
	return t.state
}

// holdsOf returns why a task is held.
func (v *views) holdsOf(t *task, row *record.Row) (holds []queue.Hold) {
	if t.damaged() {
		holds = append(holds, queue.Hold{Code: queue.HoldDamaged, What: t.damage.err.Error()})
	}
	if t.optional != nil {
		holds = v.holdsBefore(holds, t)
		if b := t.waitsBatch; b != nil && b.open > 0 {
			holds = append(holds, queue.Hold{Code: queue.HoldDependency, What: b.id.String()})
		}
		if g := t.group; g != nil && g.first() != t {
			holds = append(holds, queue.Hold{Code: queue.HoldGroup, What: g.name, State: g.first().state})
		}
	}
	if t.state == queue.Held && len(holds) == 0 {
		holds = append(holds, v.lastHold(t, row))
	}
	q := v.queues.of(t)
	if q.settings.Paused != nil {
		holds = append(holds, queue.Hold{Code: queue.HoldQueuePaused, What: q.name})
	}
	if q.suspects.held() && suspected(row) {
		holds = append(holds, queue.Hold{Code: queue.HoldSuspect})
	}
	if q.order.Keys().AtLimit(row.Key) {
		holds = append(holds, queue.Hold{Code: queue.HoldKey, What: row.Key})
	}
	if v.keyTotals.full(row.Key) {
		holds = append(holds, queue.Hold{Code: queue.HoldKeyTotal, What: row.Key})
	}
	if q.order.Keys().Blocked(row.Key)&causeRate != 0 {
		holds = append(holds, queue.Hold{Code: queue.HoldKeyRate, What: row.Key})
	}
	return holds
}

// lastHold returns the hold of a Held task that nothing holds any more, and that a scan
// will release. A predecessor that is forgotten counts as succeeded, as in holdsBefore.
func (v *views) lastHold(t *task, row *record.Row) queue.Hold {
	h := queue.Hold{Code: queue.HoldDependency}
	if !row.AfterBatch.IsZero() {
		h.What = row.AfterBatch.String()
	}
	for _, id := range slices.Concat(row.AfterAny, row.After) {
		if first := v.deps.earlier(t, id); first != nil {
			h.What, h.State = id.String(), first.state
		} else if h.What == "" {
			h.What, h.State = id.String(), queue.Succeeded
		}
	}
	return h
}

// holdsBefore appends the holds of a task by its predecessors, those of After first: waits are
// registered in that order. It is linear in their number, which may be a thousand.
func (v *views) holdsBefore(holds []queue.Hold, t *task) []queue.Hold {
	seen := make(map[queue.ID]struct{}) // a task may name a predecessor twice
	for i := range t.waits {
		w := &t.waits[i]
		id := w.on.id
		if _, twice := seen[id]; twice || !w.holds() {
			continue
		}
		seen[id] = struct{}{}
		h := queue.Hold{Code: queue.HoldDependency, What: id.String()}
		if first := v.deps.earlier(t, id); first != nil {
			h.State = first.state
		} else if w.in.cascade != nil {
			h.Code = queue.HoldForgotten
		} else {
			h.State = queue.Succeeded // it has been forgotten, and a scan will release t
		}
		holds = append(holds, h)
	}
	return holds
}

// allowance is the number of tasks and bytes that an answer may still take.
type allowance struct{ tasks, bytes int }

// newAllowance returns the allowance of an empty answer. A size of 0 bytes means no limit.
func newAllowance(tasks, size int) allowance {
	if size <= 0 {
		size = math.MaxInt
	}
	return allowance{tasks, size}
}

// any reports whether the answer may take another task.
func (a *allowance) any() bool { return a.tasks > 0 && a.bytes > 0 }

// take counts a task of the answer.
func (a *allowance) take(t *queue.Task) {
	a.tasks--
	a.bytes -= t.Size()
}
