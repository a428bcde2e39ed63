package reference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Submit implements queue.Store.
func (s *Store) Submit(_ context.Context, now time.Time, tasks []queue.NewTask) ([]queue.Receipt, error) {
	end, err := s.begin(now)
	if err != nil {
		return nil, err
	}
	defer end()
	return s.submit(tasks)
}

func (s *Store) submit(tasks []queue.NewTask) ([]queue.Receipt, error) {
	if err := s.check.tasks(tasks); err != nil {
		return nil, err
	}
	receipts, err := s.changes.submit(s.now, tasks)
	if err == nil {
		s.listeners.signal()
	}
	return receipts, err
}

// Claim implements queue.Store.
func (s *Store) Claim(_ context.Context, now time.Time, c queue.Claim) (claimed queue.Claimed, err error) {
	if err := s.check.claim(c); err != nil {
		return claimed, err
	}
	end, err := s.begin(now)
	if err != nil {
		return claimed, err
	}
	defer end()
	c.Queue = orDefault(c.Queue)
	s.total.reserve(s.now)
	for len(claimed.Tasks) < c.Max {
		t := s.order.next(s.now, c)
		if t == nil {
			if claimed.Next = s.total.refuse(s.now, c); claimed.Next.IsZero() {
				claimed.Next = s.order.nextStart(s.now, c)
			}
			break
		}
		s.tokens++
		s.changes.start(s.now, t, c, s.tokens)
		claimed.Tasks = append(claimed.Tasks, s.finder.view(s.now, t))
		if len(claimed.Tasks) < c.Max && Full(claimed.Tasks, c.Bytes) {
			claimed.Next = s.now
			break
		}
	}
	s.changes.revise(s.now)
	return claimed, nil
}

// Settle implements queue.Store.
func (s *Store) Settle(_ context.Context, now time.Time, outcomes []queue.Outcome) ([]error, error) {
	end, err := s.begin(now)
	if err != nil {
		return nil, err
	}
	defer end()
	answers := make([]error, len(outcomes))
	for i := range outcomes {
		answers[i] = s.settle(&outcomes[i])
		s.changes.revise(s.now)
	}
	s.total.reserve(s.now)
	s.listeners.signal()
	return answers, nil
}

func (s *Store) settle(o *queue.Outcome) error {
	if err := s.check.outcome(o); err != nil {
		return err
	}
	t := s.rules.Tasks.Get(o.ID)
	switch {
	case t != nil && t.Leased(o.Token):
		s.changes.settle(s.now, t, o)
		return nil
	case t != nil && t.Repeated(o):
		return nil
	default:
		return fmt.Errorf("%w: task %s, token %d", queue.ErrStale, o.ID, o.Token)
	}
}

// Heartbeat implements queue.Store.
func (s *Store) Heartbeat(
	_ context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	if err := errors.Join(validWorker(w.Name), w.Validate(), s.check.heartbeats(heartbeats)); err != nil {
		return nil, err
	}
	end, err := s.begin(now)
	if err != nil {
		return nil, err
	}
	defer end()
	s.workers[w.Name] = worker{w, s.now}
	answers := make([]queue.Answer, len(heartbeats))
	for i := range heartbeats {
		b := &heartbeats[i]
		t := s.rules.Tasks.Get(b.ID)
		if t == nil || !t.Leased(b.Token) {
			answers[i] = queue.Answer{Stop: queue.StopLost}
			continue
		}
		t.Extend(s.now, b)
		answers[i] = t.Answer()
	}
	return answers, nil
}

// Maintain implements queue.Store.
func (s *Store) Maintain(_ context.Context, now time.Time, limit int) (next time.Time, err error) {
	if limit < 0 {
		return time.Time{}, fmt.Errorf("%w: a limit of %d", queue.ErrInvalid, limit)
	}
	end, err := s.begin(now)
	if err != nil {
		return time.Time{}, err
	}
	defer end()
	for done := 0; limit == 0 || done < limit; done++ {
		e := s.soonest()
		if e == nil || e.at.After(s.now) {
			break
		}
		e.do()
		s.changes.revise(s.now)
	}
	s.total.reserve(s.now)
	s.listeners.signal()
	if e := s.soonest(); e != nil {
		return e.at, nil
	}
	return time.Time{}, nil
}

// event is a change that is due at a time.
type event struct {
	at time.Time
	do func()
}

// soonest returns the change that is due first, nil if none will be.
func (s *Store) soonest() (first *event) {
	consider := func(at time.Time, do func()) {
		if !at.IsZero() && (first == nil || at.Before(first.at)) {
			first = &event{at, do}
		}
	}
	consider(s.total.due(), func() { s.total.reserve(s.now) })
	for _, t := range s.rules.Tasks.all {
		if t.State == queue.Scheduled {
			consider(t.RunAt, func() { s.changes.pending(s.now, t, queue.Step{On: queue.OnDue}) })
		}
		if t.State.Pending() {
			consider(t.Deadline, func() { s.changes.expire(s.now, t) })
		}
		if t.State == queue.Running {
			consider(t.Lease.Until, func() { s.changes.lose(s.now, t) })
		}
		if t.State.Finished() {
			consider(s.retention.until(t), func() { s.changes.forget(s.now, t, queue.Step{On: queue.OnForget}, true) })
		}
	}
	return first
}

// Listen implements queue.Store.
func (s *Store) Listen(name string) (<-chan struct{}, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name = orDefault(name)
	ready := s.listeners.add(name)
	return ready, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.listeners.remove(name, ready)
	}
}

// Follow starts the tasks that another store has started for the same claim. The contract
// leaves a store a choice, as between keys; the error says why the other store's is wrong.
func (s *Store) Follow(now time.Time, c queue.Claim, got queue.Claimed) error {
	end, err := s.begin(now)
	if err != nil {
		return err
	}
	defer end()
	c.Queue = orDefault(c.Queue)
	if err := s.start(c, got.Tasks); err != nil {
		return err
	}
	switch {
	case len(got.Tasks) > 1 && Full(got.Tasks[:len(got.Tasks)-1], c.Bytes):
		return fmt.Errorf("a claim of %d bytes gets %d tasks", c.Bytes, len(got.Tasks))
	case len(got.Tasks) == c.Max && !got.Next.IsZero():
		return fmt.Errorf("a claim that got all that it asked for is to come back at %v", got.Next)
	case len(got.Tasks) < c.Max && Full(got.Tasks, c.Bytes) && !got.Next.Equal(s.now):
		return fmt.Errorf("a claim that got as many bytes as it may is to come back at %v; it is %v", got.Next, s.now)
	case len(got.Tasks) < c.Max && !Full(got.Tasks, c.Bytes):
		if err := s.follower.exhausted(s.now, c, got.Next); err != nil {
			return err
		}
	}
	s.changes.revise(s.now)
	return nil
}

// FollowStarts is Follow for a claim whose answer was lost: only the IDs of the tasks and
// their tokens are known, and not whether the claim could have started more.
func (s *Store) FollowStarts(now time.Time, c queue.Claim, started []queue.Task) error {
	end, err := s.begin(now)
	if err != nil {
		return err
	}
	defer end()
	c.Queue = orDefault(c.Queue)
	if err := s.start(c, started); err != nil {
		return err
	}
	s.changes.revise(s.now)
	return nil
}

// start starts tasks for a claim, and returns what keeps one of them from starting. The
// caller must hold mu.
func (s *Store) start(c queue.Claim, tasks []queue.Task) error {
	g := s.follower.of(c.Queue)
	g.turns++ // a claim that starts nothing may be a turn
	for i, started := range tasks {
		g.turns++
		t := s.rules.Tasks.Get(started.ID)
		if err := s.follower.check(s.now, t, c); err != nil {
			return fmt.Errorf("start %d: task %s: %w", i, started.ID, err)
		}
		s.changes.start(s.now, t, c, started.Lease.Token)
	}
	return nil
}

// Finished records that another store, which Follow follows, has ended up to most leases
// in one call.
func (s *Store) Finished(most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.changes.ended {
		s.follower.of(name).turns += most
	}
}

// Late reports whether there are tasks whose deadline has come.
func (s *Store) Late(now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.rules.Tasks.all, func(t *Task) bool {
		return t.State.Pending() && t.Late(later(s.now, now))
	})
}

// SetProgress sets the progress of a task, which need not survive the end of a store.
func (s *Store) SetProgress(id queue.ID, p queue.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.rules.Tasks.Get(id); t != nil {
		t.Progress = p
	}
}
