package router

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// OnlyGroup returns a store that refuses calls for queues of other groups. The leader of a group
// calls its store through it, so that a process with another table cannot put tasks of one
// queue into two groups. disputed returns a node by whose table another group names a queue, ""
// if there is none: new tasks of the queue are refused too, because that node puts them into the
// other group. It may be nil.
func OnlyGroup(s queue.Store, t *Table, group int, disputed func(name string) (node string)) queue.Store {
	return groupStore{s, t, group, disputed}
}

// groupStore is the store of one group, for calls on its queues alone.
type groupStore struct {
	queue.Store
	table    *Table
	group    int
	disputed func(name string) (node string)
}

// CheckNew returns the check of OnlyGroup for new tasks of a queue.
func CheckNew(t *Table, group int, disputed func(name string) (node string)) func(name string) error {
	return groupStore{nil, t, group, disputed}.checkNew
}

// checkKey is the key of the check in a context.
type checkKey struct{}

// WithCheck returns a context in which a store is opened that may also get tasks past OnlyGroup, from
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
func (s groupStore) checkNew(name string) error {
	if err := s.check(name); err != nil || s.disputed == nil {
		return err
	}
	if node := s.disputed(queueOf(name)); node != "" {
		return fmt.Errorf("%w: queue %s is of group %s at the node that leads it, and of another group at node %s: "+
			"start all processes with the same groups", queue.ErrInvalid, queueOf(name), s.table.Name(s.group), node)
	}
	return nil
}

// check returns an error if a queue is of another group.
func (s groupStore) check(name string) error {
	if of := s.table.Of(name); of != s.group {
		return fmt.Errorf("%w: queue %s is of group %s at the leader of group %s: start all processes with the same groups",
			queue.ErrInvalid, queueOf(name), s.table.Name(of), s.table.Name(s.group))
	}
	return nil
}

func (s groupStore) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	for i := range tasks {
		if i > 0 && tasks[i].Queue == tasks[i-1].Queue {
			continue
		}
		if err := s.checkNew(tasks[i].Queue); err != nil {
			return nil, err
		}
	}
	return s.Store.Submit(ctx, now, tasks)
}

func (s groupStore) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	if err := s.check(c.Queue); err != nil {
		return queue.Claimed{}, err
	}
	return s.Store.Claim(ctx, now, c)
}

func (s groupStore) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	if name != "" {
		if err := s.check(name); err != nil {
			return err
		}
	}
	return s.Store.Configure(ctx, now, name, c)
}

func (s groupStore) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	if name != "" {
		if err := s.check(name); err != nil {
			return err
		}
	}
	return s.Store.PauseQueue(ctx, now, name, p)
}

func (s groupStore) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	if r.To != nil {
		if err := s.checkNew(r.To.Task.Queue); err != nil {
			return err
		}
	}
	return s.Store.Reschedule(ctx, now, r)
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
