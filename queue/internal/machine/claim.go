package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
)

// Claim is as [queue.Store] says.
func (m *Machine) Claim(_ context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	if c.Queue == "" {
		c.Queue = defaultQueue
	}
	if c.Worker == "" || c.Max < 1 || c.Lease <= 0 {
		return queue.Claimed{}, fmt.Errorf("%w: a claim needs a worker, a Max and a Lease", queue.ErrInvalid)
	}
	if err := m.begin(now); err != nil {
		return queue.Claimed{}, err
	}
	claimed, mark, err := m.claim(c)
	m.journal.seal() // a task may have passed its deadline
	m.mu.Unlock()
	if err == nil {
		err = m.journal.sync(mark) // of what is claimed: nobody runs a task that may not have been accepted
	}
	if err != nil {
		return queue.Claimed{}, err
	}
	return claimed, nil
}

func (m *Machine) claim(c queue.Claim) (claimed queue.Claimed, mark uint64, err error) {
	l := m.line(c.Queue)
	for _, kind := range c.Kinds {
		l.seen[kind] = queue.Seen{Worker: c.Worker, At: m.time()}
	}
	if l.settings.Paused != nil {
		return claimed, 0, nil
	}
	m.unblockKeys()
	classes := l.classes(c.Kinds)
	for len(claimed.Tasks) < c.Max && m.journal.failed() == nil { // else a row that cannot be read comes up for ever
		e := l.order.PeekOf(l.running, classes)
		if e == nil && l.passes > 0 {
			// A task that ended and let none start is a turn of the policy as well: else a
			// tier over its cap would wait for as long as others keep the total up.
			l.passes--
			l.order.PassOf(l.running, classes)
			continue
		}
		if e == nil {
			break
		}
		t := e.Value
		if t.expiry.pos > 0 && t.expiry.at <= m.now {
			m.expire(t)
			continue
		}
		if l.rate.limited() {
			if from := l.rate.from(l.arrival); from > m.now {
				claimed.Next = timeOf(from)
				break
			}
		}
		row, err := m.row(t)
		if err != nil {
			return claimed, mark, err
		}
		m.start(t, &lease{row: row, until: m.after(c.Lease)}, c.Worker)
		claimed.Tasks = append(claimed.Tasks, m.view(t, &t.lease.row))
		mark = max(mark, t.mark)
	}
	if len(claimed.Tasks) < c.Max && claimed.Next.IsZero() {
		claimed.Next = l.nextKey(classes)
	}
	return claimed, mark, m.journal.failed()
}

// nextKey returns when the rate of a key allows a start again that tasks of
// these classes wait for; zero if there is none.
func (l *line) nextKey(classes []int) (next time.Time) {
	for name, k := range l.keys {
		if k.blocked && l.order.Waits(name, classes) && (next.IsZero() || timeOf(k.due.at).Before(next)) {
			next = timeOf(k.due.at)
		}
	}
	return next
}

// start leases a task that is next in its line.
func (m *Machine) start(t *task, held *lease, worker string) {
	l := t.line
	m.tokens++
	token := queue.Token(uint64(m.cfg.Epoch)<<epochShift + m.tokens)
	held.row.Progress = queue.Progress{}
	l.order.Start(&t.place)
	l.passes = max(l.passes-1, 0)
	l.unqueued(t)
	m.step(&held.row, queue.Running, why{on: queue.OnClaim, by: worker, token: token})
	held.row.Lease = queue.Lease{Worker: worker, Token: token, Until: timeOf(held.until)}
	l.states[queue.Waiting]--
	l.tiers[t.tier]--
	l.states[queue.Running]++
	l.running++
	t.state = queue.Running
	t.more().lease = held
	t.due.at = held.until
	m.due.set(&t.due, held.until)
	m.due.stop(&t.expiry) // it has started in time
	if l.rate.limited() {
		l.arrival = l.rate.spend(l.arrival, m.now)
	}
	m.spendKey(t)
}

// spendKey counts a start of a key, and sets the key aside if that was the last
// one that its rate allows at present.
func (m *Machine) spendKey(t *task) {
	l := t.line
	if t.key == "" || !l.keyRate.limited() {
		return
	}
	k := l.keys[t.key]
	if k == nil {
		k = &keyRate{line: l, key: t.key}
		k.due.k = k
		l.keys[t.key] = k
	}
	k.arrival = l.keyRate.spend(k.arrival, m.now)
	if from := l.keyRate.from(k.arrival); from > m.now {
		k.blocked = true
		l.order.Block(k.key)
		m.rates.set(&k.due, from)
	} else {
		m.rates.set(&k.due, k.arrival.ns+1) // when it is as good as new
	}
}

// unblockKeys lets the keys go on whose rates allow a start again, and forgets
// those that could start as many as a new one.
func (m *Machine) unblockKeys() {
	for e := m.rates.first(); e != nil && e.at <= m.now; e = m.rates.first() {
		k := e.k
		m.rates.stop(e)
		if k.blocked {
			k.blocked = false
			k.line.order.Unblock(k.key)
			k.line.signal()
		}
		if k.arrival.ns < m.now {
			delete(k.line.keys, k.key)
			continue
		}
		m.rates.set(e, k.arrival.ns+1)
	}
}
