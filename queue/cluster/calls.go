package cluster

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stintgo/stint/queue"
)

// Submit is as [queue.Store] says.
func (n *Node) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	return route(ctx, n.calls, now, func(s queue.Store, now time.Time) ([]queue.Receipt, error) {
		return s.Submit(ctx, now, tasks)
	})
}

// Claim is as [queue.Store] says. Every claim is one of [queue.Claim.Remote].
func (n *Node) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	return route(ctx, n.calls, now, func(s queue.Store, now time.Time) (queue.Claimed, error) {
		return s.Claim(ctx, now, c)
	})
}

// Settle is as [queue.Store] says.
func (n *Node) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	return route(ctx, n.calls, now, func(s queue.Store, now time.Time) ([]error, error) {
		return s.Settle(ctx, now, outcomes)
	})
}

// Heartbeat is as [queue.Store] says.
func (n *Node) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	return route(ctx, n.calls, now, func(s queue.Store, now time.Time) ([]queue.Answer, error) {
		return s.Heartbeat(ctx, now, w, heartbeats)
	})
}

// Command is as [queue.Store] says. If the leader changes meanwhile, the number is that of
// the tasks which the last attempt has changed.
func (n *Node) Command(ctx context.Context, now time.Time, c queue.Command) (int, error) {
	var rest error // of a command that has changed some tasks: to repeat it could exceed its limit
	changed, err := route(ctx, n.calls, now, func(s queue.Store, now time.Time) (n int, err error) {
		if n, err = s.Command(ctx, now, c); n > 0 && errors.Is(err, queue.ErrUnavailable) {
			rest, err = err, nil
		}
		return n, err
	})
	return changed, cmp.Or(err, rest)
}

// Find is as [queue.Store] says.
func (n *Node) Find(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	return route(ctx, n.calls, time.Time{}, func(s queue.Store, _ time.Time) ([]queue.Task, error) {
		return s.Find(ctx, f, p)
	})
}

// Explain is as [queue.Store] says.
func (n *Node) Explain(ctx context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	return route(ctx, n.calls, now, func(s queue.Store, now time.Time) ([]queue.Reason, error) {
		return s.Explain(ctx, now, id)
	})
}

// Maintain is as [queue.Store] says.
func (n *Node) Maintain(ctx context.Context, now time.Time, limit int) (next time.Time, err error) {
	return route(ctx, n.calls, now, func(s queue.Store, now time.Time) (time.Time, error) {
		return s.Maintain(ctx, now, limit)
	})
}

// Stats is as [queue.Store] says, and names the nodes and the one that leads. A leader of an earlier
// version does not name itself, and its time is by the clock of the database server then.
func (n *Node) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	stats, err := route(ctx, n.calls, now, func(s queue.Store, now time.Time) (queue.Stats, error) {
		return s.Stats(ctx, now)
	})
	if leader, _ := n.Leader(); err == nil && stats.Lead == nil && leader.Name != "" {
		stats.Lead = &queue.Lead{Name: leader.Name, Since: leader.Since}
	}
	return stats, err
}

// Configure is as [queue.Store] says.
func (n *Node) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	return routeError(ctx, n.calls, now, func(s queue.Store, now time.Time) error {
		return s.Configure(ctx, now, name, c)
	})
}

// PauseQueue is as [queue.Store] says.
func (n *Node) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	return routeError(ctx, n.calls, now, func(s queue.Store, now time.Time) error {
		return s.PauseQueue(ctx, now, name, p)
	})
}

// Settings is as [queue.Store] says.
func (n *Node) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	return route(ctx, n.calls, time.Time{}, func(s queue.Store, _ time.Time) (map[string]queue.Configured, error) {
		return s.Settings(ctx)
	})
}

// Schedules is as [queue.Store] says.
func (n *Node) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	return route(ctx, n.calls, time.Time{}, func(s queue.Store, _ time.Time) ([]queue.ScheduleState, error) {
		return s.Schedules(ctx)
	})
}

// Reschedule is as [queue.Store] says.
func (n *Node) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	return routeError(ctx, n.calls, now, func(s queue.Store, now time.Time) error { return s.Reschedule(ctx, now, r) })
}

// Watch is as [queue.Store] says. It ends with [queue.ErrUnavailable] when the leader
// changes: events until the next call of Watch are lost.
func (n *Node) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	return n.calls.watch(ctx, begun, fn)
}

// Listen is as [queue.Store] says. A change of the leader is a signal, because those on the
// way are lost.
func (n *Node) Listen(name string) (<-chan struct{}, func()) { return n.calls.listen(name) }
