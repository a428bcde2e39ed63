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
	opened Store // within Store
	nodes  *roster
	lead   queue.Lead
	now    func() time.Time // by the clock of the database server
}

// HasWaiting reports whether tasks of a queue wait, as far as the store knows: true if it does not.
func (l listed) HasWaiting(name string) bool {
	known, ok := l.opened.(interface{ HasWaiting(name string) bool })
	return !ok || known.HasWaiting(name)
}

func (l listed) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	stats, err := l.Store.Stats(ctx, now)
	if err == nil {
		lead := l.lead
		stats.Lead, stats.Nodes = &lead, l.nodes.list(clock.Now(), l.now())
	}
	return stats, err
}

// checkError is check for a call that returns only an error. Its answer does not show whether it has
// changed the database, so it is returned only while the lease lasts.
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
