package reference

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// finder finds tasks, and shows them as callers of a store see them.
type finder struct{ *Rules }

// view returns a task with its holds. It shares no memory with the original.
func (f finder) view(now time.Time, t *Task) queue.Task {
	v := t.Task
	v.Payload, v.Checkpoint, v.Result = slices.Clone(v.Payload), slices.Clone(v.Checkpoint), slices.Clone(v.Result)
	v.After, v.AfterAny = slices.Clone(v.After), slices.Clone(v.AfterAny)
	v.Steps, v.Labels = slices.Clone(v.Steps), maps.Clone(v.Labels)
	if v.State == queue.Held || v.State == queue.Waiting {
		if v.Holds = append(f.Before.Waits(t), f.Limits.holds(now, t)...); len(v.Holds) > 0 {
			v.State = queue.Held
		}
	}
	return v
}

// matching returns the tasks that a filter finds, in the order of their IDs.
func (f finder) matching(now time.Time, filter *queue.Filter) (found []*Task) {
	for _, t := range f.Tasks.all {
		v := f.view(now, t)
		if Matches(filter, &v) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b *Task) int { return compareIDs(a.ID, b.ID) })
	return found
}

// page returns a page of the tasks that a filter finds.
func (f finder) page(now time.Time, filter *queue.Filter, p queue.Page) (found []queue.Task) {
	tasks := f.matching(now, filter)
	if p.Newest {
		slices.Reverse(tasks)
	}
	const page = 100
	for _, t := range tasks {
		order := compareIDs(t.ID, p.After)
		behind := p.After.IsZero() || order > 0 && !p.Newest || order < 0 && p.Newest
		if behind && len(found) < cmp.Or(p.Limit, page) && !Full(found, p.Bytes) {
			found = append(found, f.view(now, t))
		}
	}
	return found
}

// Full reports whether an answer has as many bytes as its limit; 0 means no limit.
func Full(tasks []queue.Task, limit int) bool {
	size := 0
	for i := range tasks {
		size += tasks[i].Size()
	}
	return limit > 0 && size >= limit
}

// Matches reports whether a filter finds a task.
func Matches(f *queue.Filter, t *queue.Task) bool {
	for name, value := range f.Labels {
		if got, ok := t.Labels[name]; !ok || got != value {
			return false
		}
	}
	return (f.IDs == nil || slices.Contains(f.IDs, t.ID)) &&
		strings.HasSuffix(hex.EncodeToString(t.ID[:]), f.Ending) &&
		(f.Queue == "" || f.Queue == t.Queue) &&
		(f.Kind == "" || f.Kind == t.Kind) &&
		(f.Key == "" || f.Key == t.Key) &&
		(f.Group == "" || f.Group == t.Group) &&
		(f.Batch.IsZero() || f.Batch == t.Batch) &&
		(f.Worker == "" || f.Worker == t.Lease.Worker) &&
		(len(f.States) == 0 || slices.Contains(f.States, t.State)) &&
		strings.Contains(t.Error, f.Error) &&
		(f.From.IsZero() || !t.Submitted.Before(f.From)) &&
		(f.To.IsZero() || t.Submitted.Before(f.To))
}

func compareIDs(a, b queue.ID) int { return bytes.Compare(a[:], b[:]) }
