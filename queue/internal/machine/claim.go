package machine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
)

// Claim is as [queue.Store] says.
func (m *Machine) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	if c.Queue == "" {
		c.Queue = defaultQueue
	}
	if err := checkName("worker", c.Worker); err != nil {
		return queue.Claimed{}, err
	}
	if c.Max < 1 || c.Lease <= 0 {
		return queue.Claimed{}, fmt.Errorf("%w: a claim needs a Max and a Lease", queue.ErrInvalid)
	}
	got, err := m.claimSteps(ctx, now, c)
	if err == nil {
		// Nobody runs a task that may not have been accepted. Who left would leave
		// leases behind, so everybody waits.
		err = m.journal.sync(got.mark, nil, m.steps.stalled())
	}
	if errors.Is(err, errStalled) {
		m.unclaim(got.starts, false)
		err = m.steps.unavailable("nothing was claimed")
	}
	if err != nil {
		return queue.Claimed{}, err
	}
	if n, err := m.leaseLog.note(got.starts); err != nil {
		m.unclaim(got.starts[n:], n > 0)
		if got.Tasks = got.Tasks[:n]; n == 0 {
			return queue.Claimed{}, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
		}
	}
	return got.Claimed, nil
}

// claimSteps makes steps of a claim until one has started a task, or has found all that
// there are. Only a step that expires as many tasks as a step may is followed by
// another one.
func (m *Machine) claimSteps(ctx context.Context, now time.Time, c queue.Claim) (got granted, err error) {
	for {
		if err = m.steps.beginChange(ctx, now); err != nil {
			return got, err
		}
		opened := m.steps.opened
		if got, err = m.claims.claim(c); err != nil || len(got.Tasks) > 0 || !got.rest {
			got.mark = max(got.mark, opened)
			m.steps.seal() // a task may have passed its deadline
			m.steps.mu.Unlock()
			return got, err
		}
		if err = m.steps.end(ctx); err != nil {
			return got, err
		}
	}
}

// claims is what a claim has got so far.
type granted struct {
	queue.Claimed
	rest    bool    // tasks may be left that can start now; Next is the present time
	starts  []Noted // of its tasks
	mark    uint64  // of what has to be durable first
	damaged int     // tasks that were set aside instead
	left    allowance
}

// mostLikely is for how many tasks a claim has room from the start.
const mostLikely = 64

// nextKey returns when the rate of a key allows a start again that tasks of
// these classes wait for, and that of the queue does; zero if there is none. If very many keys wait for their
// rates it may be too early, because it does not look at all of them.
func (l *line) nextKey(classes []int) (next time.Time) {
	const most = 64
	for _, k := range l.blocked.all[:min(most, len(l.blocked.all))] {
		if l.order.Waits(k.of.key, classes) && (next.IsZero() || timeOf(k.rank).Before(next)) {
			next = timeOf(k.rank)
		}
	}
	if len(l.blocked.all) > most { // then the earliest of all, which is not later
		next = timeOf(l.blocked.all[0].rank)
	}
	if next.IsZero() || !l.limits.rate.limited() {
		return next
	}
	return timeOf(max(unix(next), l.limits.rate.from(l.arrival)))
}

// rateOf returns when the rate of a key allows a start again; 0 if it does now.
func (l *line) rateOf(key string) int64 {
	if k := l.keys[key]; k != nil && k.blocked > 0 {
		return l.blocked.all[k.blocked-1].rank
	}
	return 0
}
