package reference

import (
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// reasons explains why tasks wait.
type reasons struct {
	*Rules
	finder  finder
	total   *reservations
	workers workers
}

func (rs reasons) explain(now time.Time, t *Task) []queue.Reason {
	switch {
	case t.State == queue.Scheduled:
		return []queue.Reason{{Reason: code(queue.CodeScheduled), Until: t.RunAt, Failures: t.Failures}}
	case t.State == queue.Paused:
		pause := t.Steps[len(t.Steps)-1]
		for _, s := range t.Steps {
			if s.On == queue.OnPause {
				pause = s
			}
		}
		return []queue.Reason{{Reason: stint.Reason{Code: queue.CodeTaskPaused, Since: pause.At, By: pause.By}}}
	case !t.State.Pending():
		return nil
	}
	all := rs.held(now, t)
	if seen, lack := rs.workers.lack(now, t); lack {
		all = append(all, queue.Reason{Reason: code(queue.CodeNoWorker), What: t.Kind, LastSeen: seen})
	}
	if rs.finder.view(now, t).State == queue.Waiting {
		all = append(all, rs.turn(now, t)...)
	}
	return all
}

func code(c stint.Code) stint.Reason { return stint.Reason{Code: c} }

// held returns the reasons that are holds.
func (rs reasons) held(now time.Time, t *Task) (all []queue.Reason) {
	s := rs.Settings.layer(t.Queue)
	for _, h := range rs.finder.view(now, t).Holds {
		reason := queue.Reason{Reason: code(stint.Code(h.Code)), What: h.What, State: h.State}
		switch h.Code {
		case queue.HoldQueuePaused:
			reason.By, reason.Since = s.Paused.By, s.Paused.Since
			reason.SetBy.Default = !rs.Settings.Paused(t.Queue)
		case queue.HoldKey:
			reason.Key, reason.Limit = t.Key, rs.Settings.keyLimit(t.Queue, t.Key)
			reason.Running, reason.Holders = len(rs.Tasks.running(t.Queue, &t.Key)), rs.holders(t.Queue, &t.Key)
			reason.SetBy = rs.Settings.originOf(t, queue.FieldMax, queue.FieldPerKey)
		case queue.HoldKeyTotal:
			reason.Key, reason.Running = t.Key, len(rs.Tasks.running("", &t.Key))
			reason.Limit, reason.SetBy = rs.Settings.totalOfKey(t.Key)
			reason.Queues, reason.Holders = rs.Tasks.runningByQueue(&t.Key), rs.holders("", &t.Key)
		case queue.HoldSuspect:
			reason.Holders = rs.Tasks.runningSuspects(t.Queue)
		case queue.HoldKeyRate:
			reason.SetBy = rs.Settings.originOf(t, queue.FieldRate, queue.FieldKeyRate)
			reason.Key, reason.Until = t.Key, rs.Rates.ofKey(t.Queue, t.Key)
		default:
		}
		all = append(all, reason)
	}
	return all
}

// holdersMost is the maximum number of tasks and of queues that a reason names.
const holdersMost = 10

// holders returns at most holdersMost running tasks, of all queues if the name is "".
func (rs reasons) holders(name string, key *string) (ids []queue.ID) {
	for _, t := range rs.Tasks.running(name, key) {
		if len(ids) < holdersMost {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// turn returns why a task that nothing holds has not been claimed.
func (rs reasons) turn(now time.Time, t *Task) (all []queue.Reason) {
	in, running := rs.Settings.layer(t.Queue), len(rs.Tasks.running(t.Queue, nil))
	s := in.Settings
	if running >= orUnlimited(s.Max) {
		all = append(all, queue.Reason{
			Reason: stint.Reason{Code: stint.CodeMax, Limit: s.Max, Running: running}, Holders: rs.holders(t.Queue, nil),
			SetBy: in.From[queue.FieldMax],
		})
	}
	if !rs.total.allows(t.Queue) {
		v, _ := rs.Settings.value("", "", queue.FieldTotal)
		all = append(all, queue.Reason{
			Reason: stint.Reason{Code: queue.CodeTotal, Limit: v.Total, Running: len(rs.Tasks.running("", nil))},
			Queues: rs.Tasks.runningByQueue(nil), Holders: rs.holders("", nil), SetBy: v.Origin,
		})
	}
	if limit := capOf(s, t.Tier); running >= limit && limit < orUnlimited(s.Max) {
		all = append(all, queue.Reason{
			Reason: stint.Reason{Code: stint.CodeCap, Limit: limit, Running: running}, SetBy: in.From[queue.FieldCaps],
		})
	}
	if at := rs.Rates.ofQueue(t.Queue); at.After(now) {
		all = append(all, queue.Reason{Reason: code(stint.CodeRate), Until: at, SetBy: in.From[queue.FieldRate]})
	}
	behind := stint.Reason{Code: stint.CodeBehind}
	for _, other := range rs.Tasks.all {
		higher := other.Tier > t.Tier || other.Tier == t.Tier && other.Seq < t.Seq
		_, lack := rs.workers.lack(now, other)
		taken := other.Kind == t.Kind || !lack
		if higher && taken && other.Queue == t.Queue && rs.finder.view(now, other).State == queue.Waiting {
			behind.Ahead[other.Tier-stint.Lowest]++
		}
	}
	return slices.Concat(all, []queue.Reason{{Reason: behind}})
}
