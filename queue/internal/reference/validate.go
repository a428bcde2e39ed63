package reference

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stintgo/stint/queue"
)

// validator checks arguments.
type validator struct{ cfg Config }

func (v validator) tasks(tasks []queue.NewTask) error {
	if len(tasks) > queue.MaxSubmit {
		return fmt.Errorf("%w: %d tasks", queue.ErrTooLarge, len(tasks))
	}
	for i := range tasks {
		if err := v.task(&tasks[i]); err != nil {
			return fmt.Errorf("task %d: %w", i, err)
		}
	}
	return nil
}

func (v validator) task(t *queue.NewTask) error {
	switch {
	case t.ID.IsZero():
		return fmt.Errorf("%w: it has no ID", queue.ErrInvalid)
	case t.Kind == "":
		return fmt.Errorf("%w: it has no kind", queue.ErrInvalid)
	case !t.Tier.Valid():
		return fmt.Errorf("%w: there is no tier %s", queue.ErrInvalid, t.Tier)
	case t.Timeout < 0 || t.MaxAttempts < 0 || t.MaxCrashes < 0:
		return fmt.Errorf("%w: one of its limits is negative", queue.ErrInvalid)
	case t.UniqueFor < 0 || t.UniqueFor > queue.MaxUniqueFor || t.UniqueFor > 0 && t.Unique == "":
		return fmt.Errorf("%w: it is unique for %s", queue.ErrInvalid, t.UniqueFor)
	case !t.Deadline.IsZero() && !t.RunAt.IsZero() && !t.Deadline.After(t.RunAt):
		return fmt.Errorf("%w: its deadline is not after its RunAt", queue.ErrInvalid)
	case !t.AfterBatch.IsZero() && t.AfterBatch == t.Batch:
		return fmt.Errorf("%w: it is in the batch that it waits for", queue.ErrInvalid)
	case len(t.Payload) > v.cfg.MaxPayload:
		return fmt.Errorf("%w: a payload of %d bytes", queue.ErrTooLarge, len(t.Payload))
	default:
		return nil
	}
}

func (validator) claim(c queue.Claim) error {
	if c.Max < 1 || c.Lease <= 0 {
		return fmt.Errorf("%w: a claim needs a Max and a Lease", queue.ErrInvalid)
	}
	return validWorker(c.Worker)
}

func (v validator) outcome(o *queue.Outcome) error {
	switch o.Kind {
	case queue.OutcomeSuccess, queue.OutcomeFailure, queue.OutcomeSnooze, queue.OutcomeRelease:
	default:
		return fmt.Errorf("%w: there is no outcome %s", queue.ErrInvalid, o.Kind)
	}
	if len(o.Result) > v.cfg.MaxResult || len(o.Checkpoint) > v.cfg.MaxCheckpoint {
		return fmt.Errorf("%w: a result of %d bytes, a checkpoint of %d", queue.ErrTooLarge, len(o.Result), len(o.Checkpoint))
	}
	return nil
}

func (v validator) heartbeats(heartbeats []queue.Heartbeat) error {
	for _, b := range heartbeats {
		if len(b.Checkpoint) > v.cfg.MaxCheckpoint {
			return fmt.Errorf("%w: a checkpoint of %d bytes", queue.ErrTooLarge, len(b.Checkpoint))
		}
	}
	return nil
}

func (validator) command(c *queue.Command) error {
	switch c.Do {
	case queue.OrderPause, queue.OrderResume, queue.OrderCancel, queue.OrderRetry, queue.OrderForget, queue.OrderEdit:
		return nil
	default:
		return fmt.Errorf("%w: there is no order %s", queue.ErrInvalid, c.Do)
	}
}

func (validator) edit(c *queue.Command) error {
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

func (v validator) reschedule(r *queue.Reschedule) error {
	s := r.To
	switch {
	case r.Name == "":
		return fmt.Errorf("%w: the schedule has no name", queue.ErrInvalid)
	case s == nil && (r.Was.IsZero() || len(r.Tasks) > 0):
		return fmt.Errorf("%w: it is removed, of version %s, with %d tasks", queue.ErrInvalid, r.Was, len(r.Tasks))
	case s == nil:
		return nil
	case s.Name != r.Name || s.Version.IsZero() || s.Version == r.Was || s.Cron == "":
		return fmt.Errorf("%w: it becomes %+v", queue.ErrInvalid, s)
	case !slices.Contains([]queue.Missed{"", queue.MissedOnce, queue.MissedSkip, queue.MissedAll}, s.Missed):
		return fmt.Errorf("%w: there is no policy %q", queue.ErrInvalid, s.Missed)
	default:
		return v.task(&queue.NewTask{ID: s.Version, Spec: s.Task})
	}
}

func validWorker(name string) error {
	if invalidName(name) {
		return fmt.Errorf("%w: a worker named %q", queue.ErrInvalid, name)
	}
	return nil
}

func invalidName(name string) bool {
	const most = 200
	isControl := func(r rune) bool { return r < ' ' || r == 0x7f }
	return name == "" || len(name) > most || !utf8.ValidString(name) || strings.ContainsFunc(name, isControl)
}
