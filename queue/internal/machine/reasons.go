package machine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// reasons explains why a task has not started: what holds it, the limit that it waits
// for with the tasks that use it, and how many tasks are ahead. It changes nothing. The
// caller of each method holds the lock of the machine.
type reasons struct {
	keyTotals *keyTotals
	queues    *queueSet
	rows      *taskRows
	settings  *settingSet
	states    *stateIndex
	tasks     *tasks
	total     *total
	views     *views
	workerSet *workerSet
}

// of returns the reasons why a task has not started at a time.
func (x *reasons) of(id queue.ID, at int64) ([]queue.Reason, error) {
	t := x.tasks.get(id)
	if t == nil {
		return nil, fmt.Errorf("%w: %s", queue.ErrNotFound, id)
	}
	row, err := x.rows.row(t)
	if err != nil && !t.state.Finished() {
		return []queue.Reason{damagedReason(err)}, nil
	}
	switch t.state {
	case queue.Scheduled:
		return []queue.Reason{{
			Reason: stint.Reason{Code: queue.CodeScheduled}, Until: timeOf(t.at), Failures: row.Failures,
		}}, nil
	case queue.Paused:
		pause := pauseOf(row.Steps)
		return []queue.Reason{{
			Reason: stint.Reason{Code: queue.CodeTaskPaused, Since: pause.At, By: byAndReason(pause.By, pause.Detail)},
		}}, nil
	case queue.Held, queue.Waiting:
		return x.ofPending(t, &row, at), nil
	default:
		return nil, nil
	}
}

// pauseOf returns the step that paused a task, which edits may follow. It returns the last step if
// edits have displaced that of the pause: a task keeps queue.MaxSteps.
func pauseOf(steps []queue.Step) queue.Step {
	for _, s := range slices.Backward(steps) {
		if s.On == queue.OnPause {
			return s
		}
	}
	return steps[len(steps)-1]
}

// ofPending returns the reasons why a task that is due has not started.
func (x *reasons) ofPending(t *task, row *record.Row, at int64) (all []queue.Reason) {
	q := x.queues.of(t)
	for _, h := range x.views.holdsOf(t, row) {
		r := queue.Reason{Reason: stint.Reason{Code: stint.Code(h.Code)}, What: h.What, State: h.State}
		switch h.Code {
		case queue.HoldQueuePaused:
			p := q.settings.Paused
			r.Since, r.By = p.Since, byAndReason(p.By, p.Reason)
			r.SetBy.Default = x.settings.byName[q.name].Paused == nil
		case queue.HoldKey:
			r.Key, r.Limit, r.Running = row.Key, q.order.Keys().Limit(row.Key), q.order.Keys().Running(row.Key)
			r.SetBy = x.settings.originOf(q, row.Key, queue.FieldMax, queue.FieldPerKey)
			r.Holders = x.holders(func(t *task) bool { return t.queueNo == q.no && t.lease.row.Key == row.Key })
		case queue.HoldKeyTotal:
			r = x.atKeyTotal(r, row.Key)
		case queue.HoldSuspect:
			r.Holders = x.runningSuspects(q)
		case queue.HoldKeyRate:
			until := q.rateOf(row.Key)
			if until <= at {
				continue
			}
			r.Key, r.Until = row.Key, timeOf(until)
			r.SetBy = x.settings.originOf(q, row.Key, queue.FieldRate, queue.FieldKeyRate)
		default:
		}
		all = append(all, r)
	}
	if r, ok := x.workerSet.missing(row, at); ok {
		all = append(all, r)
	}
	if t.state == queue.Waiting {
		all = append(all, x.turn(t, row, at)...)
	}
	return all
}

// taken returns the classes of a kind, and of those kinds of a queue that live workers handle. A
// task of another kind does not go first.
func (x *reasons) taken(q *queueState, kind string, at int64) (classes []int) {
	for other, class := range q.kinds {
		if _, handled := x.workerSet.handled(q.name, other, at); handled || other == kind {
			classes = append(classes, class, class+ofSuspects)
		}
	}
	return classes
}

// turn returns what keeps an eligible task waiting in the order of its queue.
func (x *reasons) turn(t *task, row *record.Row, at int64) (all []queue.Reason) {
	q := x.queues.of(t)
	why := q.order.WhyOf(&t.entry, q.running, x.taken(q, row.Kind, at))
	if why.Full {
		all = append(all, queue.Reason{
			Reason:  stint.Reason{Code: stint.CodeMax, Limit: q.settings.Max, Running: q.running},
			Holders: x.holders(func(t *task) bool { return t.queueNo == q.no }),
			SetBy:   q.inForce.From[queue.FieldMax],
		})
	}
	if !x.total.mayStart(q) {
		all = append(all, queue.Reason{
			Reason:  stint.Reason{Code: queue.CodeTotal, Limit: x.total.limit, Running: x.total.running},
			Queues:  busiest(x.running()),
			Holders: x.holders(func(*task) bool { return true }),
			SetBy:   x.settings.totals.From[queue.FieldTotal],
		})
	}
	if why.AtCap && why.Cap < why.Max { // otherwise the limit of the queue says the same
		all = append(all, queue.Reason{
			Reason: stint.Reason{Code: stint.CodeCap, Limit: why.Cap, Running: q.running},
			SetBy:  q.inForce.From[queue.FieldCaps],
		})
	}
	if q.limits.rate.limited() {
		if from := q.limits.rate.from(q.arrival); from > at {
			all = append(all, queue.Reason{
				Reason: stint.Reason{Code: stint.CodeRate}, Until: timeOf(from), SetBy: q.inForce.From[queue.FieldRate],
			})
		}
	}
	return append(all, queue.Reason{Reason: stint.Reason{Code: stint.CodeBehind, Ahead: why.Ahead, Guard: why.GuardIn}})
}

// atKeyTotal completes the reason of a task whose key is at its limit in all queues
// together.
func (x *reasons) atKeyTotal(r queue.Reason, key string) queue.Reason {
	r.Key, r.Limit, r.Running = key, x.keyTotals.limitOf(key), x.keyTotals.keys[key].running
	r.Queues = busiest(x.runningOf(key))
	r.Holders = x.holders(func(t *task) bool { return t.lease.row.Key == key })
	layers := x.settings.byName[""].Keys[key]
	_, from, own := layers.Value(queue.FieldTotal)
	if r.SetBy = from; !own {
		r.SetBy = x.settings.totals.From[queue.FieldTotalPerKey]
	}
	return r
}

// holdersMost is the maximum number of tasks and of queues that a reason names: see Holders and
// Queues of [queue.Reason].
const holdersMost = 10

// holders returns some of the running tasks that count reports true for.
func (x *reasons) holders(count func(*task) bool) (ids []queue.ID) {
	for _, e := range x.states.leases.all {
		if count(e.of) {
			if ids = append(ids, e.of.id); len(ids) == holdersMost {
				break
			}
		}
	}
	return ids
}

// runningSuspects returns some of the running suspects of a queue: one, unless an earlier
// version has started more.
func (x *reasons) runningSuspects(q *queueState) []queue.ID {
	return x.holders(func(t *task) bool { return t.queueNo == q.no && t.lease.suspect })
}

// running returns the number of running tasks of each queue.
func (x *reasons) running() map[string]int {
	running := make(map[string]int)
	for _, q := range x.queues.byName {
		if q.running > 0 {
			running[q.name] = q.running
		}
	}
	return running
}

// runningOf returns the number of running tasks of a key in each queue.
func (x *reasons) runningOf(key string) map[string]int {
	running := make(map[string]int)
	for _, q := range x.queues.byName {
		if n := q.order.Keys().Running(key); n > 0 {
			running[q.name] = n
		}
	}
	return running
}

// damagedReason returns the reason of a task whose row cannot be read.
func damagedReason(err error) queue.Reason {
	return queue.Reason{Reason: stint.Reason{Code: stint.Code(queue.HoldDamaged)}, What: err.Error()}
}

// byAndReason joins the author of a pause and the reason that was given for it.
func byAndReason(by, why string) string {
	switch {
	case by == "":
		return why
	case why == "":
		return by
	default:
		return by + ": " + why
	}
}

// busiest returns the queues with the most running tasks, at most holdersMost.
func busiest(running map[string]int) map[string]int {
	if len(running) <= holdersMost {
		return running
	}
	names := slices.SortedFunc(maps.Keys(running), func(a, b string) int {
		return cmp.Or(cmp.Compare(running[b], running[a]), cmp.Compare(a, b))
	})
	top := make(map[string]int, holdersMost)
	for _, name := range names[:holdersMost] {
		top[name] = running[name]
	}
	return top
}
