package reference

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
)

// Limits decides which tasks the limits of queues and keys allow to start.
type Limits struct {
	tasks    *Tasks
	settings *Settings
	rates    *Rates
}

// holds returns the holds of a task that are not among its steps: pauses, suspects, and limits.
func (l Limits) holds(now time.Time, t *Task) (holds []queue.Hold) {
	if l.settings.InForce(t.Queue).Paused != nil {
		holds = append(holds, queue.Hold{Code: queue.HoldQueuePaused, What: t.Queue})
	}
	if l.SuspectHeld(t) {
		holds = append(holds, queue.Hold{Code: queue.HoldSuspect})
	}
	if t.Key == "" {
		return holds
	}
	if limit := l.settings.keyLimit(t.Queue, t.Key); limit > 0 && len(l.tasks.running(t.Queue, &t.Key)) >= limit {
		holds = append(holds, queue.Hold{Code: queue.HoldKey, What: t.Key})
	}
	if limit, _ := l.settings.totalOfKey(t.Key); limit > 0 && len(l.tasks.running("", &t.Key)) >= limit {
		holds = append(holds, queue.Hold{Code: queue.HoldKeyTotal, What: t.Key})
	}
	if l.rates.ofKey(t.Queue, t.Key).After(now) {
		holds = append(holds, queue.Hold{Code: queue.HoldKeyRate, What: t.Key})
	}
	return holds
}

// SuspectHeld reports whether a task waits for a suspect that runs, because it is one too.
func (l Limits) SuspectHeld(t *Task) bool {
	return t.Suspected() && len(l.tasks.runningSuspects(t.Queue)) > 0
}

// MayStart returns what keeps a claim from a task, except the order of tasks and the caps
// of tiers.
func (l Limits) MayStart(now time.Time, t *Task, c queue.Claim) error {
	s := l.settings.InForce(c.Queue)
	running, total := len(l.tasks.running(c.Queue, nil)), l.settings.total()
	switch {
	case t == nil:
		return errors.New("there is no such task")
	case !claimable(now, t, c):
		return fmt.Errorf("it is %s, of queue %s, of kind %s, and its deadline is %v", t.State, t.Queue, t.Kind, t.Deadline)
	case t.RunAt.After(now):
		return fmt.Errorf("it is due at %v", t.RunAt)
	case len(l.holds(now, t)) > 0:
		return fmt.Errorf("it is held by %v", l.holds(now, t))
	case running >= orUnlimited(s.Max):
		return fmt.Errorf("%d run, which is the limit", running)
	case total > 0 && len(l.tasks.running("", nil)) >= total:
		return fmt.Errorf("%d tasks of all queues run, which is the limit", total)
	case l.rates.ofQueue(c.Queue).After(now):
		return fmt.Errorf("the queue's rate allows no start before %v", l.rates.ofQueue(c.Queue))
	default:
		return nil
	}
}

// ready returns the tasks that a claim could start, caps and the total aside.
func (l Limits) ready(now time.Time, c queue.Claim) (all []*Task) {
	full := len(l.tasks.running(c.Queue, nil)) >= orUnlimited(l.settings.InForce(c.Queue).Max)
	if full || l.rates.ofQueue(c.Queue).After(now) {
		return nil
	}
	for _, t := range l.tasks.all {
		if claimable(now, t, c) && len(l.holds(now, t)) == 0 {
			all = append(all, t)
		}
	}
	return all
}

// Older returns the tasks with the queue, tier and key of t that a claim could start, and
// that go first because they are older.
func (l Limits) Older(now time.Time, t *Task, c queue.Claim) (all []*Task) {
	for _, other := range l.tasks.all {
		if other.Tier == t.Tier && other.Key == t.Key && other.Seq < t.Seq &&
			claimable(now, other, c) && len(l.holds(now, other)) == 0 {
			all = append(all, other)
		}
	}
	return all
}

// claimable reports whether nothing but limits keeps a claim from a task.
func claimable(now time.Time, t *Task, c queue.Claim) bool {
	return t.Queue == c.Queue && t.State == queue.Waiting && slices.Contains(c.Kinds, t.Kind) && !t.Late(now)
}

// capOf returns the number of running tasks from which on a tier waits: an unset cap is
// that of the tier below; above the topmost set one it is the limit of the queue, and
// below the lowest it is the lowest.
func capOf(s queue.Settings, tier stint.Priority) int {
	set := []int{s.Caps.Lowest, s.Caps.Lower, s.Caps.Low, s.Caps.Normal, s.Caps.High, s.Caps.Higher, s.Caps.Highest}
	i := int(tier - stint.Lowest)
	if !slices.ContainsFunc(set[i:], func(limit int) bool { return limit > 0 }) {
		return orUnlimited(s.Max)
	}
	for ; i >= 0; i-- {
		if set[i] > 0 {
			return min(set[i], orUnlimited(s.Max))
		}
	}
	bottom := slices.IndexFunc(set, func(limit int) bool { return limit > 0 })
	return min(set[bottom], orUnlimited(s.Max))
}

// orUnlimited is a limit as a number: 0 stands for none.
func orUnlimited(limit int) int {
	if limit == 0 {
		return math.MaxInt
	}
	return limit
}
