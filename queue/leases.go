package queue

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// leases are the leases of a session, each with its attempt, from the claim until the store
// has settled the outcome. Its watchdog ends the attempts whose leases have expired.
type leases struct {
	clock  clock.Steady
	length time.Duration // of a lease without a heartbeat
	sooner chan struct{} // signals a lease that ends before the watchdog would look
	fewer  chan struct{} // signals that held has lost an attempt

	mu        sync.Mutex
	held      map[leaseOf]*Attempt // a task may have an earlier attempt that has not ended yet
	last      map[string]lastEnd   // by queue, of the leases that the store has settled
	first     time.Time            // when the watchdog looks next
	postponed bool                 // it was so late that it did not look, see catchUp
}

// lastEnd is the last lease of a queue that the store has settled, and when its outcome was sent
// to the store first.
type lastEnd struct {
	lease leaseOf
	sent  time.Time
}

func newLeases(c clock.Steady, length time.Duration) *leases {
	return &leases{
		clock: c, length: length, sooner: make(chan struct{}, 1), fewer: make(chan struct{}, 1),
		held: make(map[leaseOf]*Attempt), last: make(map[string]lastEnd), first: c.Now().Add(length),
	}
}

// add adds the leases of attempts.
func (l *leases) add(attempts []*Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range attempts {
		l.held[a.lease] = a
		l.expectLocked(a)
	}
}

// remove removes the lease of an outcome.
func (l *leases) remove(o Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.forgetLocked(leaseOf{o.ID, o.Token}, ErrStale)
}

// settled removes the leases of outcomes of a queue that the store has answered: with nil if it
// has settled the outcome. sent is when they were sent to the store first.
func (l *leases) settled(queue string, sent time.Time, outcomes []Outcome, answers []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, err := range answers {
		lease := leaseOf{outcomes[i].ID, outcomes[i].Token}
		l.forgetLocked(lease, err)
		if err == nil {
			l.last[queue] = lastEnd{lease, sent}
		}
	}
}

// forgetLocked removes a lease, whose outcome the store has answered with err. The caller holds mu.
func (l *leases) forgetLocked(lease leaseOf, err error) {
	if a := l.held[lease]; a != nil {
		a.settled(err)
		delete(l.held, lease)
	}
	signal(l.fewer)
}

// has reports whether a lease of a queue is held, or is the one that was settled last.
func (l *leases) has(queue string, lease leaseOf) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[lease] != nil || l.last[queue].lease == lease
}

// lastSettled returns, by queue, the leases that were settled last.
func (l *leases) lastSettled() map[string]lastEnd {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.last)
}

// attempts returns the attempts of all leases.
func (l *leases) attempts() []*Attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.AppendSeq(make([]*Attempt, 0, len(l.held)), maps.Values(l.held))
}

// expireUntil ends, until ctx ends, the handlers whose leases have expired by the clock
// of this process: other workers may have their tasks. It needs no answer of the store,
// which may hang. One timer serves all tasks, because a timer for each would be a large
// part of the cost of a small task.
func (l *leases) expireUntil(ctx context.Context) {
	l.mu.Lock()
	wake := time.NewTimer(max(l.first.Sub(l.clock.Now()), atLeast))
	l.mu.Unlock()
	defer wake.Stop()
	for {
		select {
		case <-wake.C:
		case <-l.sooner:
		case <-ctx.Done():
			return
		}
		now := l.clock.Now()
		wake.Reset(l.expire(now).Sub(now))
	}
}

// catchUp is how late a timer is if this process was stopped, or its machine paused, and how
// long what ends leases is postponed then. The heartbeats were as late, and are sent meanwhile:
// the store extends each lease of this process whose task it has not given to another.
const catchUp = time.Second

// expire ends the handlers of expired leases, and returns when the next lease may expire.
func (l *leases) expire(now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.postponed = !l.postponed && now.Sub(l.first) >= catchUp; l.postponed {
		l.first = now.Add(catchUp)
		return l.first
	}
	l.first = now.Add(l.length)
	for _, a := range l.held {
		switch {
		case !a.until.After(now):
			a.end(ErrStale)
		case a.until.Before(l.first):
			l.first = a.until
		}
	}
	return l.first
}

// expectLocked makes expire watch the lease of a task. The caller holds mu.
func (l *leases) expectLocked(a *Attempt) {
	if a.until.Before(l.first) { // otherwise the next look is early enough
		l.first = a.until
		if now := l.clock.Now(); l.first.Before(now) { // the answer came late, and this process is not
			l.first = now
		}
		signal(l.sooner)
	}
}

// extend sets a later end of a lease; the answer to an earlier heartbeat may come after that to a later one.
func (l *leases) extend(a *Attempt, until time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until.After(a.until) {
		a.until = until
	}
}
