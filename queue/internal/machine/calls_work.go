package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// Submit is as [queue.Store] says.
func (m *Machine) Submit(ctx context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	own, err := m.submissions.checked(tasks)
	if err != nil {
		return nil, m.refused(tasks, err)
	}
	tasks = own
	prints := m.fingerprints.of(tasks)
	if err := m.steps.beginChange(ctx, now); err != nil {
		return nil, m.refused(tasks, err)
	}
	receipts, err := m.submissions.acceptAll(tasks, prints)
	if syncErr := m.steps.end(ctx); err == nil {
		err = syncErr
	}
	if err != nil {
		return nil, err
	}
	return receipts, nil
}

// refused returns the error of a call of Submit that fails with err. If the rows take no changes, and an
// earlier call with the same tasks was decided, the error says that: the tasks are not refused then.
func (m *Machine) refused(tasks []queue.NewTask, err error) error {
	if m.steps.cfg.Stalled == nil || !errors.Is(err, queue.ErrUnavailable) || m.steps.lockOpen() != nil {
		return err
	}
	before := slices.ContainsFunc(tasks, func(t queue.NewTask) bool { return m.submissions.known(t.ID) != 0 })
	m.steps.mu.Unlock()
	if before {
		return m.steps.unavailable(decided)
	}
	return err
}

// Claim is as [queue.Store] says.
func (m *Machine) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	if c.Queue == "" {
		c.Queue = queue.DefaultQueue
	}
	if err := checkName("worker", c.Worker); err != nil {
		return queue.Claimed{}, err
	}
	if c.Max < 1 || c.Lease <= 0 {
		return queue.Claimed{}, fmt.Errorf("%w: Max of a claim is %d, and Lease is %s; both must be more than 0",
			queue.ErrInvalid, c.Max, c.Lease)
	}
	got, err := m.claimSteps(ctx, now, c)
	if len(got.Tasks) > 0 {
		defer m.steps.using.Done()
	}
	if err == nil {
		// A worker must not run a task whose submission may be lost in a crash. The wait
		// has no leave channel: a caller that left would leave leases behind.
		err = m.journal.Sync(got.mark, nil, m.steps.stalled())
	}
	if errors.Is(err, journal.ErrStalled) {
		m.unclaim(got.Tasks, false)
		err = m.steps.unavailable("nothing was claimed")
	}
	if err != nil {
		return queue.Claimed{}, err
	}
	if n, err := m.leaseLog.record(got.entries); err != nil {
		m.unclaim(got.Tasks[n:], n > 0)
		if got.Tasks = got.Tasks[:n]; n == 0 {
			return queue.Claimed{}, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
		}
	}
	if !c.Remote && len(got.Tasks) > 0 && m.steps.closed.Load() { // Close has released the leases
		return queue.Claimed{}, queue.ErrClosed
	}
	return got.Claimed, nil
}

// claimSteps makes steps of a claim until one has started a task or has found no more
// tasks. Another step follows only if a step has expired as many tasks as it may.
func (m *Machine) claimSteps(ctx context.Context, now time.Time, c queue.Claim) (got granted, err error) {
	for {
		if err = m.steps.beginChange(ctx, now); err != nil {
			return got, err
		}
		opened := m.steps.opened
		if got, err = m.claims.claim(c); err != nil || len(got.Tasks) > 0 || !got.more {
			got.mark = max(got.mark, opened)
			if len(got.Tasks) > 0 {
				// Close waits: the leases of a worker elsewhere outlive it, and must be recorded.
				m.steps.using.Add(1)
			}
			m.steps.seal() // the step may have written rows of expired tasks
			m.steps.mu.Unlock()
			return got, err
		}
		if err = m.steps.end(ctx); err != nil {
			return got, err
		}
	}
}

// unclaim undoes starts that could not be recorded in the lease log and that no worker
// has received. It adds no step to the tasks: on a disk that fails for long, repeated
// claims would otherwise fill their histories. signal wakes the workers of the queue.
// It is set if other starts of the claim were recorded; if none was, the next claim
// would probably fail too, and signals would make workers claim in a loop.
func (m *Machine) unclaim(claimed []queue.Task, signal bool) {
	m.steps.lockCorrected()
	defer m.steps.mu.Unlock()
	if !m.steps.closed.Load() {
		m.claims.takeBack(claimed, signal)
	}
	m.steps.seal() // not awaited: a crash that loses these changes loses the claim as well
}

// Heartbeat is as [queue.Store] says.
func (m *Machine) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	if err := errors.Join(checkName("worker", w.Name), w.Validate()); err != nil {
		return nil, err
	}
	begin := m.steps.begin
	for i := range heartbeats {
		if n := len(heartbeats[i].Checkpoint); n > m.cfg.MaxCheckpoint {
			return nil, tooLarge("checkpoint", n, m.cfg.MaxCheckpoint)
		}
		if heartbeats[i].Checkpoint != nil {
			begin = m.steps.beginChange // repeated checkpoints would fill the memory while the rows take none
		}
	}
	if err := begin(ctx, now); err != nil {
		return nil, err
	}
	begun := m.journal.Mark()
	m.workerSet.heartbeat(w)
	answers := make([]queue.Answer, len(heartbeats))
	for i := range heartbeats {
		answers[i] = m.attempts.heartbeat(&heartbeats[i])
	}
	if m.journal.Mark() == begun && m.steps.opened == 0 {
		// Ends of leases are only in memory, so there is nothing to wait for. Waiting for
		// the changes of other calls would end the leases of healthy workers while a disk
		// is full. Only the first call waits, for the times that it has corrected.
		m.steps.mu.Unlock()
		return answers, nil
	}
	if err := m.steps.end(ctx); err != nil {
		return nil, err
	}
	return answers, nil
}

// Settle is as [queue.Store] says.
func (m *Machine) Settle(ctx context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	if err := m.steps.begin(ctx, now); err != nil {
		return nil, err
	}
	answers := make([]error, len(outcomes))
	for i := range outcomes {
		answers[i] = m.attempts.settle(&outcomes[i])
		m.scans.advance()
	}
	if err := m.steps.end(ctx); err != nil {
		return nil, err
	}
	return answers, nil
}

// Maintain is as [queue.Store] says.
func (m *Machine) Maintain(ctx context.Context, now time.Time, limit int) (next time.Time, err error) {
	switch {
	case limit < 0:
		return time.Time{}, fmt.Errorf("%w: the limit is %d; it is 0 for none, or more", queue.ErrInvalid, limit)
	case limit == 0:
		limit = math.MaxInt
	}
	for removed := 0; ; {
		if err := m.steps.beginChange(ctx, now); err != nil {
			if removed > 0 {
				err = fmt.Errorf("after %d changes that may not be durable yet: %w", removed, err)
			}
			return time.Time{}, err
		}
		size, values := min(limit, maintainStep), m.journal.Values()
		at, left, more := m.maintainer.maintain(size)
		limit -= size - left
		removed += size - left
		complete := !more || limit == 0
		wrote := m.journal.Values() > values || len(m.scans.fresh) > 0
		if !complete && !wrote && removed < maintainRemoved {
			m.steps.seal()
			m.steps.mu.Unlock()
			continue
		}
		if err := errors.Join(m.journal.Failed(), m.steps.end(ctx)); err != nil {
			return time.Time{}, err
		}
		if complete && at == 0 {
			return time.Time{}, nil
		} else if complete {
			return timeOf(at), nil
		}
		removed = 0
	}
}

const (
	// maintainStep limits the changes that Maintain makes in one step.
	maintainStep = 100
	// maintainRemoved limits the tasks that Maintain forgets before it waits until that is
	// durable. If it waited after each step, it would forget tasks more slowly than tasks
	// end. After a step that has written values, or may write some, it waits: values may be
	// large, and would fill the memory.
	maintainRemoved = 1000
)

// HasWaiting reports whether tasks of a queue are in the state Waiting. Servers ask before they pass
// a signal on to more of their clients.
func (m *Machine) HasWaiting(name string) bool {
	m.steps.mu.Lock()
	defer m.steps.mu.Unlock()
	q := m.queues.byName[cmp.Or(name, queue.DefaultQueue)]
	return q != nil && q.order.Len() > 0
}

// Listen is as [queue.Store] says.
func (m *Machine) Listen(name string) (<-chan struct{}, func()) {
	name = cmp.Or(name, queue.DefaultQueue)
	ready := make(chan struct{}, 1)
	m.steps.mu.Lock()
	defer m.steps.mu.Unlock()
	if m.steps.closed.Load() {
		return ready, func() {}
	}
	m.queues.setListeners(name, append(m.queues.listeners[name], ready))
	return ready, func() {
		m.steps.mu.Lock()
		defer m.steps.mu.Unlock()
		is := func(c chan struct{}) bool { return c == ready }
		m.queues.setListeners(name, slices.DeleteFunc(m.queues.listeners[name], is))
	}
}
