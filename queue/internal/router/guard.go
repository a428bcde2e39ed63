package router

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Guard returns a store that refuses calls for queues of other groups. The leader of a group
// calls its store through it, so that a process with another table cannot put tasks of one
// queue into two groups. disputed returns a node by whose table another group names a queue, ""
// if there is none: new tasks of the queue are refused too, because that node puts them into the
// other group. It may be nil.
func Guard(s queue.Store, t *Table, group int, disputed func(name string) (node string)) queue.Store {
	return guard{s, t, group, disputed}
}

type guard struct {
	queue.Store
	table    *Table
	group    int
	disputed func(name string) (node string)
}

// CheckNew returns the check of Guard for new tasks of a queue.
func CheckNew(t *Table, group int, disputed func(name string) (node string)) func(name string) error {
	return guard{nil, t, group, disputed}.checkNew
}

// checkKey is the key of the check in a context.
type checkKey struct{}

// WithCheck returns a context in which a store is opened that may also get tasks past Guard, from
// transactions in its database. check returns why it must not accept new tasks of a queue.
func WithCheck(ctx context.Context, check func(name string) error) context.Context {
	return context.WithValue(ctx, checkKey{}, check)
}

// CheckOf returns the check of a context; without one, all queues are accepted.
func CheckOf(ctx context.Context) func(name string) error {
	if check, ok := ctx.Value(checkKey{}).(func(name string) error); ok {
		return check
	}
	return func(string) error { return nil }
}

// checkNew returns an error if tasks cannot be added to a queue.
func (g guard) checkNew(name string) error {
	if err := g.check(name); err != nil || g.disputed == nil {
		return err
	}
	if node := g.disputed(queueOf(name)); node != "" {
		return fmt.Errorf("%w: queue %s is of group %s at the node that leads it, and of another group at node %s: "+
			"start all processes with the same groups", queue.ErrInvalid, queueOf(name), g.table.Name(g.group), node)
	}
	return nil
}

// check returns an error if a queue is of another group.
func (g guard) check(name string) error {
	if of := g.table.Of(name); of != g.group {
		return fmt.Errorf("%w: queue %s is of group %s at the leader of group %s: start all processes with the same groups",
			queue.ErrInvalid, queueOf(name), g.table.Name(of), g.table.Name(g.group))
	}
	return nil
}

func (g guard) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	for i := range tasks {
		if i > 0 && tasks[i].Queue == tasks[i-1].Queue {
			continue
		}
		if err := g.checkNew(tasks[i].Queue); err != nil {
			return nil, err
		}
	}
	return g.Store.Submit(ctx, now, tasks)
}

func (g guard) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	if err := g.check(c.Queue); err != nil {
		return queue.Claimed{}, err
	}
	return g.Store.Claim(ctx, now, c)
}

func (g guard) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	if name != "" {
		if err := g.check(name); err != nil {
			return err
		}
	}
	return g.Store.Configure(ctx, now, name, c)
}

func (g guard) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	if name != "" {
		if err := g.check(name); err != nil {
			return err
		}
	}
	return g.Store.PauseQueue(ctx, now, name, p)
}

func (g guard) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	if r.To != nil {
		if err := g.checkNew(r.To.Task.Queue); err != nil {
			return err
		}
	}
	return g.Store.Reschedule(ctx, now, r)
}

// Foreign returns an error if a group has unfinished tasks of queues of another group, which
// no worker would find there.
func (s *Store) Foreign(ctx context.Context, now time.Time, group int) error {
	stats, err := s.stores[group].Stats(ctx, now)
	if err != nil {
		return err
	}
	for name, counts := range stats.Queues {
		unfinished := 0
		for state, n := range counts.States {
			if !state.Finished() {
				unfinished += n
			}
		}
		if of := s.table.Of(name); of != group && unfinished > 0 {
			return fmt.Errorf("%w: group %s has %d unfinished tasks of queue %s, which is of group %s now: let them finish "+
				"with the former groups first", queue.ErrInvalid, s.table.Name(group), unfinished, name, s.table.Name(of))
		}
	}
	if schedules, err := s.stores[group].Schedules(ctx); err != nil {
		return err
	} else if i := slices.IndexFunc(schedules, func(f queue.ScheduleState) bool {
		return s.table.Of(f.Task.Queue) != group
	}); i >= 0 {
		return fmt.Errorf("%w: group %s has schedule %q of queue %s, which is of group %s now: remove the schedule with the "+
			"former groups first, and add it again", queue.ErrInvalid, s.table.Name(group), schedules[i].Name,
			queueOf(schedules[i].Task.Queue), s.table.Name(s.table.Of(schedules[i].Task.Queue)))
	}
	return nil
}
