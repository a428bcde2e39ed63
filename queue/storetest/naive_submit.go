package storetest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

func (n *naive) Submit(_ context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	end, err := n.begin(now)
	if err != nil {
		return nil, err
	}
	defer end()
	return n.submit(tasks)
}

// submit accepts tasks, all or none, as a part of a call.
func (n *naive) submit(tasks []queue.NewTask) ([]queue.Receipt, error) {
	if len(tasks) > queue.MaxSubmit {
		return nil, fmt.Errorf("%w: %d tasks", queue.ErrTooLarge, len(tasks))
	}
	for i := range tasks {
		if err := n.valid(&tasks[i]); err != nil {
			return nil, fmt.Errorf("task %d: %w", i, err)
		}
	}
	receipts, fresh, err := n.receive(tasks)
	if err != nil {
		return nil, err
	}
	n.rows = append(n.rows, fresh...)
	for _, r := range fresh {
		n.accept(r)
	}
	n.revise()
	n.signal()
	return receipts, nil
}

func (n *naive) valid(t *queue.NewTask) error {
	switch {
	case t.ID.IsZero():
		return fmt.Errorf("%w: it has no ID", queue.ErrInvalid)
	case t.Kind == "":
		return fmt.Errorf("%w: it has no kind", queue.ErrInvalid)
	case !t.Tier.Valid():
		return fmt.Errorf("%w: %s is no tier", queue.ErrInvalid, t.Tier)
	case t.Timeout < 0 || t.MaxAttempts < 0 || t.MaxCrashes < 0:
		return fmt.Errorf("%w: a limit of it is negative", queue.ErrInvalid)
	case t.UniqueFor < 0 || t.UniqueFor > queue.MaxUniqueFor || t.UniqueFor > 0 && t.Unique == "":
		return fmt.Errorf("%w: it is unique for %s", queue.ErrInvalid, t.UniqueFor)
	case !t.Deadline.IsZero() && !t.RunAt.IsZero() && !t.Deadline.After(t.RunAt):
		return fmt.Errorf("%w: it is not to start before its deadline", queue.ErrInvalid)
	case !t.AfterBatch.IsZero() && t.AfterBatch == t.Batch:
		return fmt.Errorf("%w: it would wait for itself, which is in that batch", queue.ErrInvalid)
	case len(t.Payload) > n.cfg.MaxPayload:
		return fmt.Errorf("%w: a payload of %d bytes", queue.ErrTooLarge, len(t.Payload))
	default:
		return nil
	}
}

// receive answers tasks and makes rows of those that are new, without changing
// anything yet.
func (n *naive) receive(tasks []queue.NewTask) (receipts []queue.Receipt, fresh []*row, err error) {
	instead := make(map[queue.ID]queue.ID) // of those that have the Unique of others
	for i := range tasks {
		r := n.newRow(&tasks[i], len(fresh))
		if same, ok := n.same(r, fresh); ok {
			receipts = append(receipts, queue.Receipt{ID: same, Existing: same != r.ID})
			instead[r.ID] = same
			continue
		}
		for _, after := range [][]queue.ID{r.After, r.AfterAny} {
			for j, id := range after {
				if there, ok := instead[id]; ok {
					id, after[j] = there, there
				}
				if n.row(id) == nil && !slices.ContainsFunc(fresh, func(f *row) bool { return f.ID == id }) {
					return nil, nil, fmt.Errorf("task %d: %w: it comes after task %s, which is not known", i, queue.ErrInvalid, id)
				}
			}
		}
		if limit := n.inForce(r.Queue).Pending; limit > 0 && n.unfinished(r.Queue, fresh) >= limit {
			return nil, nil, fmt.Errorf("task %d: %w: queue %s has %d unfinished tasks", i, queue.ErrFull, r.Queue, limit)
		}
		fresh = append(fresh, r)
		receipts = append(receipts, queue.Receipt{ID: r.ID})
	}
	return receipts, fresh, nil
}

// newRow makes a row that shares nothing with the caller.
func (n *naive) newRow(t *queue.NewTask, place int) *row {
	r := &row{Task: queue.Task{ID: t.ID, Spec: t.Spec, Submitted: n.now}, seq: n.submits + uint64(place) + 1}
	r.Queue = orDefault(r.Queue)
	r.Payload, r.Labels = slices.Clone(t.Payload), maps.Clone(t.Labels)
	r.After, r.AfterAny = slices.Clone(t.After), slices.Clone(t.AfterAny)
	return r
}

// same is the task that a new one is the repetition of, or has the Unique of.
func (n *naive) same(r *row, fresh []*row) (id queue.ID, ok bool) {
	all := slices.Concat(n.rows, fresh)
	for _, other := range all {
		if other.ID == r.ID {
			return other.ID, true
		}
	}
	for _, other := range all {
		if r.Unique != "" && other.Unique == r.Unique && other.Queue == r.Queue {
			return other.ID, true
		}
	}
	for _, other := range n.uniques {
		if r.Unique != "" && r.Unique == other.Unique && r.Queue == other.Queue && other.uniqueUntil().After(n.now) {
			return other.ID, true
		}
	}
	return queue.ID{}, false
}

// uniqueUntil is when the Unique of a task need not answer its ID any more.
func (r *row) uniqueUntil() time.Time { return r.Submitted.Add(r.UniqueFor) }

func (n *naive) unfinished(name string, fresh []*row) (count int) {
	for _, r := range slices.Concat(n.rows, fresh) {
		if r.Queue == name && !r.State.Finished() {
			count++
		}
	}
	return count
}

// accept gives a new task its first state.
func (n *naive) accept(r *row) {
	n.submits++
	if poison := n.poison(r); poison != nil {
		r.Error = fmt.Sprintf("the same work as task %s, which has crashed its workers", poison.ID)
		n.step(r, queue.Dead, queue.Step{On: queue.OnSubmit, Detail: r.Error})
		return
	}
	n.step(r, n.pending(r), queue.Step{On: queue.OnSubmit})
}

// poison is a dead task that did the same as r and crashed its workers.
func (n *naive) poison(r *row) *row {
	for _, other := range n.rows {
		if other.State == queue.Dead && other.Steps[len(other.Steps)-1].On == queue.OnLost &&
			other.Kind == r.Kind && bytes.Equal(other.Payload, r.Payload) {
			return other
		}
	}
	return nil
}
