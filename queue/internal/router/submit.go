package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Submit is as [queue.Store] says. All tasks of a call belong to one group, because they are
// accepted together or not at all; so do a task and those that it comes after.
func (s *Store) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	if len(tasks) == 0 {
		return s.stores[s.table.Default()].Submit(ctx, now, tasks)
	}
	g := s.table.Of(tasks[0].Queue)
	for i := range tasks {
		if other := s.table.Of(tasks[i].Queue); other != g {
			return nil, fmt.Errorf("%w: tasks that are submitted together are of one group, but queue %s is of group %s and "+
				"queue %s of group %s: submit them in calls of their own", queue.ErrInvalid,
				queueOf(tasks[0].Queue), s.table.Name(g), queueOf(tasks[i].Queue), s.table.Name(other))
		}
	}
	if err := s.checkBatches(ctx, g, tasks); err != nil {
		return nil, err
	}
	receipts, err := s.stores[g].Submit(ctx, now, tasks)
	if errors.Is(err, queue.ErrInvalid) {
		return nil, s.crossing(ctx, g, tasks, err)
	}
	for i, r := range receipts {
		s.tasks.put(r.ID, g)
		if batch := tasks[i].Batch; !batch.IsZero() {
			s.batches.put(batch, g) // not before: a batch whose tasks are refused is of no group
		}
	}
	return receipts, err
}

// checkBatches refuses tasks of a batch, and tasks after a batch, whose tasks are of another
// group. A group that does not have the tasks of a batch would take the batch for finished.
func (s *Store) checkBatches(ctx context.Context, g int, tasks []queue.NewTask) error {
	refuse := func(t *queue.NewTask, batch queue.ID, other int) error {
		return fmt.Errorf("%w: task %s of queue %s, group %s, has to do with batch %s, whose tasks are of group %s: a batch "+
			"and the tasks after it are of one group", queue.ErrInvalid, t.ID, queueOf(t.Queue), s.table.Name(g), batch,
			s.table.Name(other))
	}
	here := make(map[queue.ID]bool) // the batches of these tasks
	for i := range tasks {
		t := &tasks[i]
		for _, batch := range []queue.ID{t.Batch, t.AfterBatch} {
			if other, known := s.batches.of(batch); known && other != g && !batch.IsZero() {
				return refuse(t, batch, other)
			}
		}
		here[t.Batch] = true
	}
	others := slices.DeleteFunc(s.all(), func(other int) bool { return other == g })
	groups := slices.Insert(others, 0, g) // g is likely to have the batch
	for i := range tasks {
		t := &tasks[i]
		_, known := s.batches.of(t.AfterBatch)
		if known || here[t.AfterBatch] || t.AfterBatch.IsZero() || t.AfterBatch == t.ID {
			continue
		}
		// Another process has submitted the batch, or this one long ago.
		for _, other := range groups {
			found, err := s.stores[other].Find(ctx, queue.Filter{Batch: t.AfterBatch}, queue.Page{Limit: 1})
			if err != nil {
				return err
			}
			if len(found) > 0 {
				s.batches.put(t.AfterBatch, other)
				if other != g {
					return refuse(t, t.AfterBatch, other)
				}
				break
			}
		}
	}
	return nil
}

// crossing returns a better error than err if a task comes after one of another group. It asks the
// other groups for 3 s at most.
func (s *Store) crossing(ctx context.Context, g int, tasks []queue.NewTask, err error) error {
	after := make(map[queue.ID]*queue.NewTask)
	for i := range tasks {
		for _, ids := range [][]queue.ID{tasks[i].After, tasks[i].AfterAny} {
			for _, id := range ids {
				after[id] = &tasks[i]
			}
		}
	}
	for i := range tasks {
		delete(after, tasks[i].ID)
	}
	ids := make([]queue.ID, 0, len(after))
	for id := range after {
		ids = append(ids, id)
	}
	if len(ids) == 0 {
		return err
	}
	ctx, stop := partOf(ctx, len(s.stores))
	defer stop()
	for _, other := range s.all() {
		if other == g {
			continue
		}
		found, findErr := s.stores[other].Find(ctx, queue.Filter{IDs: ids}, queue.Page{Limit: 1})
		if findErr != nil || len(found) == 0 {
			continue
		}
		before, t := &found[0], after[found[0].ID]
		return fmt.Errorf("%w: task %s of queue %s, group %s, comes after task %s of queue %s, group %s: tasks come only "+
			"after tasks of their own group; put both queues into one", queue.ErrInvalid, t.ID, queueOf(t.Queue),
			s.table.Name(g), before.ID, queueOf(before.Queue), s.table.Name(other))
	}
	return err
}
