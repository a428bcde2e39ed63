package router

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// Configure is as [queue.Admin] says. The defaults of all queues are set in each group, the
// default group first. A limit on all queues together is refused.
func (s *Store) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	if name != "" {
		return s.stores[s.table.Of(name)].Configure(ctx, now, name, c)
	}
	total := func(f queue.Field) bool { return f == queue.FieldTotal || f == queue.FieldTotalPerKey }
	if c.Set.Total != 0 || c.Set.TotalPerKey != 0 || slices.ContainsFunc(c.Unlimited, total) {
		return fmt.Errorf("%w: a limit on all queues together cannot hold, because the queues are of %d groups: limit each "+
			"queue, or put the queues into one group", queue.ErrInvalid, len(s.stores))
	}
	for _, g := range s.all() {
		if err := s.stores[g].Configure(ctx, now, name, c); err != nil {
			return err
		}
		c.Version = 0 // the version is that of the default group
	}
	return nil
}

// PauseQueue is as [queue.Admin] says. With the name "" it pauses the queues of each group at once; a
// group that does not answer does not keep the others from it.
func (s *Store) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	if name != "" {
		return s.stores[s.table.Of(name)].PauseQueue(ctx, now, name, p)
	}
	return s.each(s.all(), func(g int) error { return s.stores[g].PauseQueue(ctx, now, name, p) })
}

// Settings is as [queue.Admin] says. Those of all queues are those of the default group.
func (s *Store) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	parts := make([]map[string]queue.Configured, len(s.stores))
	err := s.gather(ctx, func(ctx context.Context, g int) (err error) {
		parts[g], err = s.stores[g].Settings(ctx)
		return err
	})
	all := make(map[string]queue.Configured)
	for g, part := range parts {
		for name, c := range part {
			if name == "" && g == s.table.Default() || name != "" && s.table.Of(name) == g {
				all[name] = c
			}
		}
	}
	return all, err
}

// Schedules is as [queue.Admin] says.
func (s *Store) Schedules(ctx context.Context) (all []queue.ScheduleState, err error) {
	parts := make([][]queue.ScheduleState, len(s.stores))
	err = s.gather(ctx, func(ctx context.Context, g int) (err error) {
		parts[g], err = s.stores[g].Schedules(ctx)
		return err
	})
	all = slices.Concat(parts...)
	slices.SortStableFunc(all, func(a, b queue.ScheduleState) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// Reschedule is as [queue.Admin] says. A schedule is of the group of its queue, and stays
// there: to give it a queue of another group, remove it first.
func (s *Store) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	if r.To == nil {
		g, err := s.schedule(ctx, r.Name)
		if err != nil {
			return err
		}
		return s.stores[max(g, 0)].Reschedule(ctx, now, r)
	}
	g := s.table.Of(r.To.Task.Queue)
	for i := range r.Tasks {
		if s.table.Of(r.Tasks[i].Queue) != g {
			return fmt.Errorf("%w: schedule %q is of group %s, and its task is not", queue.ErrInvalid, r.Name, s.table.Name(g))
		}
	}
	var err error
	if !r.Was.IsZero() {
		if err = s.reschedule(ctx, now, g, r); !errors.Is(err, queue.ErrChanged) {
			return err
		}
	}
	at, findErr := s.schedule(ctx, r.Name)
	switch {
	case findErr != nil:
		return findErr
	case at >= 0 && at != g:
		return fmt.Errorf("%w: schedule %q is of group %s, and queue %s of group %s: remove the schedule, and add it again",
			queue.ErrInvalid, r.Name, s.table.Name(at), queueOf(r.To.Task.Queue), s.table.Name(g))
	case err != nil:
		return err
	}
	return s.reschedule(ctx, now, g, r)
}

// reschedule is Reschedule of a group, and remembers the group of the tasks.
func (s *Store) reschedule(ctx context.Context, now time.Time, group int, r queue.Reschedule) error {
	err := s.stores[group].Reschedule(ctx, now, r)
	if err == nil {
		for i := range r.Tasks {
			s.tasks.put(r.Tasks[i].ID, group)
		}
	}
	return err
}

// schedule returns the group that has a schedule, or -1.
func (s *Store) schedule(ctx context.Context, name string) (group int, err error) {
	var mu sync.Mutex // guards group
	group = -1
	err = s.search(ctx, s.all(), func(ctx context.Context, g int) (all bool, err error) {
		found, err := s.stores[g].Schedules(ctx)
		if !slices.ContainsFunc(found, func(f queue.ScheduleState) bool { return f.Name == name }) {
			return false, err
		}
		mu.Lock()
		defer mu.Unlock()
		group = g
		return true, nil
	})
	return group, err
}
