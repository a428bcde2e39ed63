package machine

import (
	"cmp"
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
		err = m.journal.sync(got.mark, nil, m.stalled())
	}
	if errors.Is(err, errStalled) {
		m.unclaim(got.starts, false)
		err = m.unavailable("nothing was claimed")
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
func (m *Machine) claimSteps(ctx context.Context, now time.Time, c queue.Claim) (got claims, err error) {
	for {
		if err = m.beginChange(ctx, now); err != nil {
			return got, err
		}
		opened := m.opened
		if got, err = m.claim(c); err != nil || len(got.Tasks) > 0 || !got.rest {
			got.mark = max(got.mark, opened)
			m.seal() // a task may have passed its deadline
			m.mu.Unlock()
			return got, err
		}
		if err = m.end(ctx); err != nil {
			return got, err
		}
	}
}

// claims is what a claim has got so far.
type claims struct {
	queue.Claimed
	rest    bool    // tasks may be left that can start now; Next is the present time
	starts  []Noted // of its tasks
	mark    uint64  // of what has to be durable first
	damaged int     // tasks that were set aside instead
	left    allowance
}

// mostLikely is for how many tasks a claim has room from the start.
const mostLikely = 64

// claim starts tasks. An error is that of the first one: those that have started
// before one that cannot are the answer, and a signal says that there may be more.
func (m *Machine) claim(c queue.Claim) (got claims, err error) {
	m.workerSet.see(c.Worker, c.Queue, c.Kinds)
	m.total.lapse()
	l := m.queues.byName[c.Queue]
	if l == nil {
		return got, nil
	}
	defer m.total.yield(l)
	if l.settings.Paused != nil {
		return got, nil
	}
	m.keyRates.unblock()
	m.classes = l.classes(m.classes[:0], c.Kinds)
	got.left = newAllowance(c.Max, c.Bytes)
	for got.left.any() && err == nil {
		var t *task
		if t, got.Next = m.next(l, m.classes); t == nil {
			got.rest = got.Next.Equal(m.clock.time())
			break
		}
		suspect := t.isSuspect()
		if err = m.grant(t, &c, &got); suspect {
			m.classes = l.classes(m.classes[:0], c.Kinds) // without the others
		}
	}
	if len(got.Tasks) > 0 && err != nil {
		err = nil // it comes up again
		l.signal()
	}
	switch {
	case got.left.tasks > 0 && got.left.bytes <= 0:
		got.Next = m.clock.time() // for the rest
	case got.left.tasks > 0 && got.Next.IsZero():
		got.Next = l.nextKey(m.classes)
	}
	return got, cmp.Or(m.journal.failed(), err)
}

// next returns the task of a queue whose turn it is, nil if there is none, and when to
// ask again: when its rate allows a start, or now if this step has expired as many tasks
// as it may.
func (m *Machine) next(l *line, classes []int) (t *task, at time.Time) {
	for m.journal.failed() == nil { // else a row that cannot be read comes up for ever
		e := l.order.PeekOf(l.running, classes)
		if e != nil {
			t = m.tasks.at(e.Value)
		}
		switch {
		case e == nil && l.passes > 0:
			// A task that ended and let none start is a turn of the policy as well: else a
			// tier over its cap would wait for as long as others keep the total up.
			l.passes--
			l.order.PassOf(l.running, classes)
		case e == nil:
			return nil, at
		case t.late(m.clock.now) && m.passes.left <= 0:
			return nil, m.clock.time()
		case t.late(m.clock.now):
			m.passes.left--
			m.transitions.expire(t)
			m.passes.advance()
		case !t.free() && m.passes.left <= 0:
			l.signal()
			return nil, at
		case !t.free():
			m.holds.hold(t)
		case l.limits.rate.limited() && l.limits.rate.from(l.arrival) > m.clock.now:
			return nil, timeOf(l.limits.rate.from(l.arrival))
		case !m.total.mayStart(l):
			return nil, m.total.refuse(l)
		default:
			return t, at
		}
	}
	return nil, at
}

// grant starts a task for a claim, or sets it aside.
func (m *Machine) grant(t *task, c *queue.Claim, got *claims) error {
	held := new(lease)
	written, err := m.prefetch.readFirst(t, &held.row)
	if err != nil {
		m.states.quarantine(t, err)
		if got.damaged++; got.damaged < mostDamaged {
			return nil
		}
		return err
	}
	s := Start{ID: t.id, Seq: held.row.Seq, Token: m.counters.nextToken(), At: m.clock.time(), Worker: c.Worker}
	if c.Remote {
		s.Remote = c.Lease
	}
	if held.place, err = m.leaseLog.reserve(s.Token); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	m.start(t, held, s, c.Lease)
	l := m.queues.of(t)
	if got.Tasks == nil { // limits may leave fewer
		likely := min(c.Max, 1+l.waiting.n, mostLikely)
		got.Tasks, got.starts = make([]queue.Task, 0, likely), make([]Noted, 0, likely)
	}
	got.Tasks = append(got.Tasks, m.view(t, &held.row))
	got.left.take(&got.Tasks[len(got.Tasks)-1])
	if held.place > 0 {
		got.starts = append(got.starts, Noted{held.place, s})
	}
	// The end of a lease that may have made room for this one has to be durable as
	// well: a crash would bring it back beside this one.
	got.mark = max(got.mark, written, l.roomEnd, m.slots.roomEnd)
	if held.suspect { // else a crash of its making would be that of the one before as well
		got.mark = max(got.mark, l.suspectEnd)
	}
	return nil
}

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

// start leases a task that is next in its line.
func (m *Machine) start(t *task, held *lease, s Start, length time.Duration) {
	l := m.queues.of(t)
	m.states.start(t, held.row.Key)
	m.transitions.claimed(l, &held.row, s, m.clock.time())
	m.states.run(t, held, m.clock.after(length))
	l.lastStart = s.Token
	if l.limits.rate.limited() {
		l.arrival = l.limits.rate.spend(l.arrival, m.clock.now)
	}
	m.keyRates.spend(l, held.row.Key)
}

// rateOf returns when the rate of a key allows a start again; 0 if it does now.
func (l *line) rateOf(key string) int64 {
	if k := l.keys[key]; k != nil && k.blocked > 0 {
		return l.blocked.all[k.blocked-1].rank
	}
	return 0
}
