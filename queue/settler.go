package queue

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// settleMost is the largest number of outcomes that one call settles.
const settleMost = 512

// outcomesAhead is the number of outcomes of all queues together that may wait for the settlers
// before handlers keep their slots; they take 140 kB. Each queue has its share of it, and at least
// outcomesLeast.
const (
	outcomesAhead = 1024
	outcomesLeast = 64
)

// settlers are the settlers of a session, by queue. A store may consist of several, each with some
// of the queues: if one of these does not answer, only the outcomes of its queues wait.
type settlers struct {
	byQueue map[string]*settler
	// by is set when the handlers have ended: no outcome is retried after that.
	by atomic.Pointer[time.Time]
}

// newSettlers returns the settlers of some queues. Their calls have the values of base.
func newSettlers(base context.Context, q *Queue, held *leases, queues []string) *settlers {
	all := &settlers{byQueue: make(map[string]*settler, len(queues))}
	ahead := max(outcomesAhead/max(len(queues), 1), outcomesLeast)
	for _, name := range queues {
		all.byQueue[name] = &settler{
			q: q, queue: name, leases: held, base: base, outcomes: make(chan Outcome, ahead), by: &all.by,
		}
	}
	return all
}

// run settles outcomes until close has been called and none is left.
func (s *settlers) run() {
	var running sync.WaitGroup
	for _, ofQueue := range s.byQueue {
		running.Go(ofQueue.run)
	}
	running.Wait()
}

// close ends run after the outcomes so far. The caller sends no more of them.
func (s *settlers) close() {
	for _, ofQueue := range s.byQueue {
		close(ofQueue.outcomes)
	}
}

// settler sends the outcomes of a queue to the store, with one call at a time, and removes their
// leases.
type settler struct {
	q        *Queue
	queue    string
	leases   *leases
	base     context.Context            //nolint:containedctx // the calls have its values; they do not end with it
	outcomes chan Outcome               // closed after the last one
	by       *atomic.Pointer[time.Time] // of all settlers
}

// run sends outcomes until the channel is closed, with one call for all that are in the
// channel at a time.
func (s *settler) run() {
	for o := range s.outcomes {
		batch := append(make([]Outcome, 0, len(s.outcomes)+1), o)
		for len(batch) < settleMost && len(s.outcomes) > 0 {
			batch = append(batch, <-s.outcomes)
		}
		s.settleAll(batch)
	}
}

// settleAll settles outcomes. While the store cannot be reached, it tries again until Run ends,
// also after the leases: a store that other workers reach answers that the outcomes are late,
// and one that none reaches has given the tasks to no other worker. A call that is too large is
// divided.
func (s *settler) settleAll(batch []Outcome) {
	const first, longest = 10 * time.Millisecond, time.Second
	sent := s.q.clock.Now()
	for wait := first; ; wait = min(2*wait, s.q.cfg.Poll, longest) {
		answers, err := s.settleOnce(batch)
		if err == nil {
			s.settled(sent, batch, answers)
			return
		}
		if errors.Is(err, ErrTooLarge) {
			s.divide(batch, err)
			return
		}
		s.q.cfg.Logger.Error("settle tasks",
			slog.String("queue", s.queue), slog.Int("tasks", len(batch)), slog.Any("error", err))
		by := s.by.Load()
		if errors.Is(err, ErrClosed) || by != nil && s.q.clock.Now().After(*by) {
			break
		}
		time.Sleep(wait)
	}
	for _, o := range batch {
		s.leases.remove(o)
	}
}

// divide settles outcomes whose call is too large for the store: a server limits the bytes of a
// call, and refuses all of a call for one outcome that is too large. Half of them at a time
// leaves the outcomes that are refused alone.
func (s *settler) divide(batch []Outcome, err error) {
	half := len(batch) / 2
	if half == 0 {
		s.leases.remove(batch[0])
		s.refused(batch[0], err)
		return
	}
	s.settleAll(batch[:half])
	s.settleAll(batch[half:])
}

// settleOnce makes one call, which takes as long as a lease at most. When Run is stopping, all
// remaining outcomes have the time until by together.
func (s *settler) settleOnce(batch []Outcome) ([]error, error) {
	now, limit := s.q.clock.Now(), s.q.cfg.Lease
	if by := s.by.Load(); by != nil {
		limit = min(limit, by.Sub(now))
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(s.base), max(limit, atLeast))
	defer stop()
	return s.q.store.Settle(ctx, now, batch)
}

// settled removes the leases of outcomes that the store has answered, and replaces those that it
// refuses. sent is when they were sent first.
func (s *settler) settled(sent time.Time, batch []Outcome, answers []error) {
	s.leases.settled(s.queue, sent, batch, answers)
	for i, err := range answers {
		o := batch[i]
		switch {
		case err == nil:
			s.q.soon.add(o.RunAt)
		case errors.Is(err, ErrTooLarge), errors.Is(err, ErrInvalid):
			s.refused(o, err)
		default:
			s.q.cfg.Logger.Warn("the outcome of a task came too late", o.attrs(err)...)
		}
	}
}

// refused replaces an outcome that the store refuses: a success loses its checkpoint, which no
// attempt needs any more, and others become a permanent failure. Otherwise the task would run
// again and again until its leases have been lost too often.
func (s *settler) refused(o Outcome, err error) {
	s.q.cfg.Logger.Error("the outcome of a task was refused", o.attrs(err)...)
	switch {
	case o.Kind == OutcomeSuccess && o.Checkpoint != nil:
		o.Checkpoint = nil
		s.settleAll([]Outcome{o})
		return
	case o.Kind == OutcomeFailure && o.Permanent && o.Checkpoint == nil:
		return // the outcome is such a failure already
	}
	s.settleAll([]Outcome{{ID: o.ID, Token: o.Token, Kind: OutcomeFailure, Permanent: true, Error: err.Error()}})
}

// attrs returns the log attributes of an outcome that was refused.
func (o *Outcome) attrs(err error) []any {
	return []any{slog.Any("task", o.ID), slog.Any("outcome", o.Kind), slog.Any("error", err)}
}
