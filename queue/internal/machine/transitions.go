package machine

import (
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// transitions moves tasks from state to state: it adds a step to the row, moves the task
// in the index of states, writes the row and sends events to the watchers. A finished
// task leaves its group and its batch, and a scan of the tasks that wait for it starts. A
// task whose row cannot be read is put in quarantine instead. It panics on a transition
// that queue.Allowed does not list. All other parts change states by these methods,
// except claimer and loader, commands.edit, stateIndex.quarantine and holds.repair: these
// add no step, or their own. The caller of each method holds the lock of the machine.
type transitions struct {
	clock        *clock
	deps         *dependencies
	fingerprints *fingerprints
	journal      *journal.Journal
	prefetch     *prefetch
	queues       *queueSet
	rows         *taskRows
	slots        *slots
	states       *stateIndex
	tasks        *tasks
	watchers     *watchers
}

// cause is what makes a task change its state.
type cause struct {
	on     queue.Trigger
	by     string // a worker, or the author of a command
	token  queue.Token
	detail string
}

// step adds a transition at the present time to a row, and sends it to the watchers.
func (x *transitions) step(q *queueState, row *record.Row, to queue.State, w cause) {
	x.stepAt(q, row, to, w, x.clock.time())
}

// stepAt is step for a transition at another time.
func (x *transitions) stepAt(q *queueState, row *record.Row, to queue.State, w cause, at time.Time) {
	from := row.State
	if !queue.Allowed(from, w.on, to) {
		panic(fmt.Sprintf("machine: task %s: %s from %s to %s is not in the table", row.ID, w.on, from, to))
	}
	row.State, row.Changed = to, at
	if len(row.Steps) == queue.MaxSteps {
		row.Steps = slices.Delete(row.Steps, 1, 2)
	}
	row.Steps = append(row.Steps, queue.Step{
		At: row.Changed, On: w.on, To: to, By: w.by, Token: w.token, Detail: w.detail,
	})
	q.countStep(row, w.on)
	x.watchers.notify(row, from)
}

// change moves a task to another state, in its row and in memory.
func (x *transitions) change(t *task, row *record.Row, to queue.State, w cause) {
	held := t.leased()
	x.step(x.queues.of(t), row, to, w)
	x.states.leave(t)
	x.states.enter(t, row, to)
	x.rows.write(t.id, row)
	if held != nil {
		x.ended(x.queues.of(t), held)
	}
	if to.Finished() {
		x.finish(t)
	}
}

// ended records the end of a lease, if that end must be durable before another lease begins
// in its place.
func (x *transitions) ended(q *queueState, held *lease) {
	if held.suspect {
		q.suspects.end = x.journal.Mark()
	}
	limited, shared := q.limited(), x.slots.shared()
	if !held.remote || !limited && !shared {
		return
	}
	end, durable := recentEnd{x.journal.Mark(), held.row.Key}, x.journal.Durable()
	if limited {
		q.ends.add(end, durable)
	}
	if shared {
		x.slots.ends.add(end, durable)
	}
}

// revise reads the row of a task and calls change. If the row cannot be read, it puts the
// task in quarantine instead.
func (x *transitions) revise(t *task, to queue.State, w cause) {
	row, err := x.rows.row(t)
	if err != nil {
		x.states.quarantine(t, err)
		return
	}
	x.change(t, &row, to, w)
}

// pending returns the state of an unfinished task whose RunAt is runAt: Scheduled, Held
// or Waiting.
func (x *transitions) pending(t *task, runAt int64) queue.State {
	switch {
	case runAt > x.clock.now:
		return queue.Scheduled
	case !t.free():
		return queue.Held
	default:
		return queue.Waiting
	}
}

// finish removes a finished task from its group, its batch and all waits, and starts
// scans of the tasks that waited for it.
func (x *transitions) finish(t *task) {
	if r := t.optional; r != nil {
		x.states.deadlines.remove(t)
		if r.group != nil {
			if next := x.queues.of(t).groups.leave(t); next != nil {
				x.unhold(next)
			}
		}
		if r.batch != nil {
			x.deps.leaveBatch(r.batch)
		}
		x.deps.forgetWaits(t)
		t.optional = nil
		if r.poison != nil {
			t.optional = &optional{poison: r.poison}
		}
	}
	x.deps.finished(t)
}

// claimed adds a claim to a row.
func (x *transitions) claimed(q *queueState, row *record.Row, e LeaseEntry, at time.Time) {
	row.Progress = queue.Progress{}
	x.stepAt(q, row, queue.Running, cause{on: queue.OnClaim, by: e.Worker, token: e.Token}, at)
	row.Lease = queue.Lease{Worker: e.Worker, Token: e.Token}
	row.Remote = e.Remote
}

// put puts a task that is in no state, a new or a retried one, into its first state.
func (x *transitions) put(t *task, row *record.Row, to queue.State, w cause) {
	x.step(x.queues.of(t), row, to, w)
	x.states.enter(t, row, to)
	value := x.rows.encode(row)
	x.journal.Set(taskRow(&t.id), value, to == queue.Waiting && x.prefetch.near(t, len(value)))
}

// unhold makes a Held task Waiting if nothing holds it any more.
func (x *transitions) unhold(t *task) {
	if t.state == queue.Held && t.free() {
		x.revise(t, queue.Waiting, cause{on: queue.OnUnhold})
	}
}

// expire makes a task Dead whose deadline has passed before it started, or started again.
// Its error keeps that of the last failure, which is the cause if it has failed until then.
func (x *transitions) expire(t *task) {
	x.states.deadlines.remove(t)
	row, err := x.rows.row(t)
	if err != nil {
		x.states.quarantine(t, err)
		return
	}
	w := cause{on: queue.OnExpire, detail: "its deadline passed before it started"}
	if row.Lease.Token > 0 { // it was claimed before
		w.detail += " again"
	}
	if row.Failures == 0 {
		row.Error = w.detail
	} else {
		row.Error = shortened(w.detail + "; the last error: " + row.Error)
	}
	x.change(t, &row, queue.Dead, w)
}

// forget removes a finished task. A cascade cancels the tasks that wait for its success,
// because it can no longer succeed.
func (x *transitions) forget(t *task, row *record.Row, w cause) {
	x.watchers.notifyForgotten(row, w)
	if row.Unique != "" {
		x.journal.Set(uniqueRow(&row.Spec), nil, false)
	}
	x.drop(t, w)
}

// drop is forget for a task without a unique name, and without an event.
func (x *transitions) drop(t *task, w cause) {
	id, seq := t.id, t.entry.Ticket()
	x.fingerprints.remove(t)
	x.states.leave(t)
	x.tasks.remove(t)
	x.journal.Set(taskRow(&id), nil, false)
	x.deps.abandon(id, seq, w)
}
