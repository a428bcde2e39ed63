package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

// errLeaseOver is the error of a call whose answer may be out of date.
var errLeaseOver = fmt.Errorf("%w: the node that leads cannot renew its lease, and its answer may be out of date",
	queue.ErrUnavailable)

// checked is the store of a node that leads. The database refuses changes when another node
// leads. Any other answer, also the reason of a refusal, comes from memory, and is answered
// only while the lease has not ended.
type checked struct {
	Store
}

// check returns the answer of a call, unless it may be out of date. changed says that the
// call has made a change in the database, which has confirmed by it that this node led.
func check[T any](c checked, answer T, changed bool, err error) (T, error) {
	if (err != nil || !changed) && !c.Leads() {
		var zero T
		if why := c.Trouble(); why != nil {
			return zero, fmt.Errorf("%w: %w", errLeaseOver, why)
		}
		return zero, errLeaseOver
	}
	return answer, err
}

// listed is the store of a node that leads, which names the nodes and the leader. Their times are by
// the clock of the database server, as all others.
type listed struct {
	queue.Store
	nodes *roster
	lead  queue.Lead
	now   func() time.Time // by the clock of the database server
}

func (l listed) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	stats, err := l.Store.Stats(ctx, now)
	if err == nil {
		lead := l.lead
		stats.Lead, stats.Nodes = &lead, l.nodes.list(clock.Now(), l.now())
	}
	return stats, err
}

// checkError is check for a call that returns only an error. Nothing in its answer says whether
// it has changed anything: that a queue has a setting already may be out of date.
func (c checked) checkError(err error) error {
	_, err = check(c, struct{}{}, false, err)
	return err
}

func (c checked) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	receipts, err := c.Store.Submit(ctx, now, tasks)
	return check(c, receipts, slices.ContainsFunc(receipts, func(r queue.Receipt) bool { return !r.Existing }), err)
}

func (c checked) Claim(ctx context.Context, now time.Time, q queue.Claim) (queue.Claimed, error) {
	claimed, err := c.Store.Claim(ctx, now, q)
	return check(c, claimed, len(claimed.Tasks) > 0, err)
}

func (c checked) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	errs, err := c.Store.Settle(ctx, now, outcomes)
	return check(c, errs, errors.Join(errs...) == nil, err)
}

func (c checked) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	answers, err := c.Store.Heartbeat(ctx, now, w, heartbeats)
	return check(c, answers, false, err)
}

func (c checked) Command(ctx context.Context, now time.Time, q queue.Command) (int, error) {
	n, err := c.Store.Command(ctx, now, q)
	return check(c, n, n > 0, err)
}

func (c checked) Find(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	found, err := c.Store.Find(ctx, f, p)
	return check(c, found, false, err)
}

func (c checked) Explain(ctx context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	reasons, err := c.Store.Explain(ctx, now, id)
	return check(c, reasons, false, err)
}

func (c checked) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	stats, err := c.Store.Stats(ctx, now)
	return check(c, stats, false, err)
}

func (c checked) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	settings, err := c.Store.Settings(ctx)
	return check(c, settings, false, err)
}

func (c checked) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	schedules, err := c.Store.Schedules(ctx)
	return check(c, schedules, false, err)
}

func (c checked) Configure(ctx context.Context, now time.Time, name string, q queue.Change) error {
	return c.checkError(c.Store.Configure(ctx, now, name, q))
}

func (c checked) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	return c.checkError(c.Store.PauseQueue(ctx, now, name, p))
}

func (c checked) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	return c.checkError(c.Store.Reschedule(ctx, now, r))
}

// againFirst and againLast limit the pause between two attempts of a call.
const (
	againFirst = 10 * time.Millisecond
	againLast  = 200 * time.Millisecond
)

// route makes a call at the node that leads. While no node can answer, it makes the call
// again, up to the patience of the node. A remote store does that by itself. The leader takes the
// age of a call for a difference of the clocks, so the time of an attempt is when it is made.
func route[T any](
	ctx context.Context, n *Node, now time.Time, call func(s queue.Store, now time.Time) (T, error),
) (answer T, err error) {
	var zero T
	begun, at := clock.Now(), now
	var patience <-chan time.Time
	for pause := againFirst; ; pause = min(2*pause, againLast) {
		v := n.current.view()
		store, remote := n.storeOf(v)
		answer, err = call(store, at)
		switch {
		case err != nil && n.current.ended() != nil:
			return zero, n.current.ended()
		case remote || ctx.Err() != nil:
			return answer, err
		case !errors.Is(err, queue.ErrUnavailable) && !errors.Is(err, queue.ErrClosed):
			return answer, err
		}
		if patience == nil {
			timer := time.NewTimer(n.cfg.Patience)
			defer timer.Stop()
			patience = timer.C
		}
		again := time.NewTimer(pause)
		select {
		case <-again.C:
		case <-v.life.Done(): // the call goes to the next leader
			again.Stop()
		case <-patience:
			again.Stop()
			if errors.Is(err, queue.ErrClosed) {
				err = fmt.Errorf("%w: %w", queue.ErrUnavailable, errNoLeader)
			}
			return zero, err
		case <-ctx.Done():
			again.Stop()
			return zero, fmt.Errorf("%w: %v", context.Cause(ctx), err) //nolint:errorlint // the call has ended for the cause
		}
		at = now.Add(clock.Now().Sub(begun))
	}
}

// routeError is route for calls that return only an error.
func routeError(ctx context.Context, n *Node, now time.Time, call func(s queue.Store, now time.Time) error) error {
	_, err := route(ctx, n, now, func(s queue.Store, now time.Time) (struct{}, error) { return struct{}{}, call(s, now) })
	return err
}

// Submit is as [queue.Store] says.
func (n *Node) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	return route(ctx, n, now, func(s queue.Store, now time.Time) ([]queue.Receipt, error) {
		return s.Submit(ctx, now, tasks)
	})
}

// Claim is as [queue.Store] says. Every claim is one of [queue.Claim.Remote].
func (n *Node) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	return route(ctx, n, now, func(s queue.Store, now time.Time) (queue.Claimed, error) {
		return s.Claim(ctx, now, c)
	})
}

// Settle is as [queue.Store] says.
func (n *Node) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	return route(ctx, n, now, func(s queue.Store, now time.Time) ([]error, error) {
		return s.Settle(ctx, now, outcomes)
	})
}

// Heartbeat is as [queue.Store] says.
func (n *Node) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	return route(ctx, n, now, func(s queue.Store, now time.Time) ([]queue.Answer, error) {
		return s.Heartbeat(ctx, now, w, heartbeats)
	})
}

// Command is as [queue.Store] says. If the leader changes meanwhile, the number is that of
// the tasks which the last attempt has changed.
func (n *Node) Command(ctx context.Context, now time.Time, c queue.Command) (int, error) {
	return route(ctx, n, now, func(s queue.Store, now time.Time) (int, error) { return s.Command(ctx, now, c) })
}

// Find is as [queue.Store] says.
func (n *Node) Find(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	return route(ctx, n, time.Time{}, func(s queue.Store, _ time.Time) ([]queue.Task, error) {
		return s.Find(ctx, f, p)
	})
}

// Explain is as [queue.Store] says.
func (n *Node) Explain(ctx context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	return route(ctx, n, now, func(s queue.Store, now time.Time) ([]queue.Reason, error) {
		return s.Explain(ctx, now, id)
	})
}

// Maintain is as [queue.Store] says.
func (n *Node) Maintain(ctx context.Context, now time.Time, limit int) (next time.Time, err error) {
	return route(ctx, n, now, func(s queue.Store, now time.Time) (time.Time, error) {
		return s.Maintain(ctx, now, limit)
	})
}

// Stats is as [queue.Store] says, and names the nodes and the one that leads. A leader of an earlier
// version does not name itself, and its time is by the clock of the database server then.
func (n *Node) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	stats, err := route(ctx, n, now, func(s queue.Store, now time.Time) (queue.Stats, error) {
		return s.Stats(ctx, now)
	})
	if leader, _ := n.Leader(); err == nil && stats.Lead == nil && leader.Name != "" {
		stats.Lead = &queue.Lead{Name: leader.Name, Since: leader.Since}
	}
	return stats, err
}

// Configure is as [queue.Store] says.
func (n *Node) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	return routeError(ctx, n, now, func(s queue.Store, now time.Time) error { return s.Configure(ctx, now, name, c) })
}

// PauseQueue is as [queue.Store] says.
func (n *Node) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	return routeError(ctx, n, now, func(s queue.Store, now time.Time) error {
		return s.PauseQueue(ctx, now, name, p)
	})
}

// Settings is as [queue.Store] says.
func (n *Node) Settings(ctx context.Context) (map[string]queue.Configured, error) {
	return route(ctx, n, time.Time{}, func(s queue.Store, _ time.Time) (map[string]queue.Configured, error) {
		return s.Settings(ctx)
	})
}

// Schedules is as [queue.Store] says.
func (n *Node) Schedules(ctx context.Context) ([]queue.ScheduleState, error) {
	return route(ctx, n, time.Time{}, func(s queue.Store, _ time.Time) ([]queue.ScheduleState, error) {
		return s.Schedules(ctx)
	})
}

// Reschedule is as [queue.Store] says.
func (n *Node) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	return routeError(ctx, n, now, func(s queue.Store, now time.Time) error { return s.Reschedule(ctx, now, r) })
}

// Watch is as [queue.Store] says. It ends with [queue.ErrUnavailable] when the leader
// changes: events until the next call of Watch are lost.
func (n *Node) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	if n.current.ended() != nil {
		return n.current.ended()
	}
	v := n.current.view()
	bound, cancel := context.WithCancel(ctx)
	defer cancel()
	defer v.atEnd(cancel)()
	store, _ := n.storeOf(v)
	err := store.Watch(bound, begun, fn)
	switch {
	case n.current.ended() != nil:
		return n.current.ended()
	case v.life.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("%w: the leader has changed: watch again", queue.ErrUnavailable)
	}
	return err
}
