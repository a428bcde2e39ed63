package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

func (n *naive) Explain(_ context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	end, err := n.begin(now)
	if err != nil {
		return nil, err
	}
	defer end()
	r := n.row(id)
	switch {
	case r == nil:
		return nil, fmt.Errorf("%w: %s", queue.ErrNotFound, id)
	case r.State == queue.Scheduled:
		return []queue.Reason{{Reason: code(queue.CodeScheduled), Until: r.RunAt, Failures: r.Failures}}, nil
	case r.State == queue.Paused:
		by := r.Steps[len(r.Steps)-1].By
		return []queue.Reason{{Reason: stint.Reason{Code: queue.CodeTaskPaused, Since: r.Changed, By: by}}}, nil
	case !r.State.Pending():
		return nil, nil
	}
	return slices.Concat(n.held(r), n.noWorker(r), n.turn(r)), nil
}

func code(c stint.Code) stint.Reason { return stint.Reason{Code: c} }

// held are the reasons that are holds.
func (n *naive) held(r *row) (reasons []queue.Reason) {
	s := n.layer(r.Queue)
	for _, h := range n.view(r).Holds {
		reason := queue.Reason{Reason: code(stint.Code(h.Code)), What: h.What, State: h.State}
		switch h.Code {
		case queue.HoldQueuePaused:
			reason.By, reason.Since = s.Paused.By, s.Paused.Since
			reason.SetBy.Default = n.settings.paused[r.Queue] == nil
		case queue.HoldKey:
			reason.Key, reason.Limit = r.Key, n.keyLimit(r.Queue, r.Key)
			reason.Running, reason.Holders = n.running(r.Queue, &r.Key), n.holders(r.Queue, &r.Key)
			reason.SetBy = n.originOf(r, queue.FieldMax, queue.FieldPerKey)
		case queue.HoldKeyTotal:
			reason.Key, reason.Limit, reason.Running = r.Key, n.totalOfKey(r.Key), n.runningOfAll(&r.Key)
			reason.Queues, reason.Holders = n.runningByQueue(&r.Key), n.holders("", &r.Key)
			v, set := n.value("", r.Key, queue.FieldTotal)
			if !set {
				v, _ = n.value("", "", queue.FieldTotalPerKey)
			}
			reason.SetBy = v.Origin
		case queue.HoldSuspect:
			reason.Holders = n.runningSuspects(r.Queue)
		case queue.HoldKeyRate:
			reason.SetBy = n.originOf(r, queue.FieldRate, queue.FieldKeyRate)
			reason.Key, reason.Until = r.Key, mayStartAt(n.keyRate(r.Queue, r.Key), n.queue(r.Queue).keys[r.Key])
		default:
		}
		reasons = append(reasons, reason)
	}
	return reasons
}

// holders are at most ten of the tasks that run, of all queues if the name is "".
func (n *naive) holders(name string, key *string) (ids []queue.ID) {
	for _, r := range n.rows {
		if r.State == queue.Running && (name == "" || r.Queue == name) && (key == nil || r.Key == *key) && len(ids) < 10 {
			ids = append(ids, r.ID)
		}
	}
	return ids
}

// noWorker says so if no live worker knows the kind.
func (n *naive) noWorker(r *row) []queue.Reason {
	var seen queue.Seen
	for _, w := range n.workers {
		if !slices.Contains(w.Kinds[r.Queue], r.Kind) {
			continue
		}
		if n.lives(w) {
			return nil
		}
		if w.at.After(seen.At) {
			seen = queue.Seen{Worker: w.Name, At: w.at}
		}
	}
	return []queue.Reason{{Reason: code(queue.CodeNoWorker), What: r.Kind, LastSeen: seen}}
}

// turn is why a task that nothing holds has not been claimed.
func (n *naive) turn(r *row) (reasons []queue.Reason) {
	if n.view(r).State != queue.Waiting {
		return nil
	}
	in, running := n.layer(r.Queue), n.running(r.Queue, nil)
	s := in.Settings
	if running >= most(s.Max) {
		reasons = append(reasons, queue.Reason{
			Reason: stint.Reason{Code: stint.CodeMax, Limit: s.Max, Running: running}, Holders: n.holders(r.Queue, nil),
			SetBy: in.From[queue.FieldMax],
		})
	}
	if !n.totalAllows(r.Queue) {
		v, _ := n.value("", "", queue.FieldTotal)
		reasons = append(reasons, queue.Reason{
			Reason: stint.Reason{Code: queue.CodeTotal, Limit: v.Total, Running: n.runningOfAll(nil)},
			Queues: n.runningByQueue(nil), Holders: n.holders("", nil), SetBy: v.Origin,
		})
	}
	if limit := capOf(s, r.Tier); running >= limit {
		reasons = append(reasons, queue.Reason{
			Reason: stint.Reason{Code: stint.CodeCap, Limit: limit, Running: running}, SetBy: in.From[queue.FieldCaps],
		})
	}
	if at := mayStartAt(s.Rate, n.queue(r.Queue).arrival); at.After(n.now) {
		reasons = append(reasons, queue.Reason{Reason: code(stint.CodeRate), Until: at, SetBy: in.From[queue.FieldRate]})
	}
	behind := stint.Reason{Code: stint.CodeBehind}
	for _, other := range n.rows {
		higher := other.Tier > r.Tier || other.Tier == r.Tier && other.seq < r.seq
		if higher && other.Queue == r.Queue && n.view(other).State == queue.Waiting {
			behind.Ahead[other.Tier-stint.Lowest]++
		}
	}
	return append(reasons, queue.Reason{Reason: behind})
}
