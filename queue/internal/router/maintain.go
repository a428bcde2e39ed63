package router

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/queue"
)

// slow is what is known of a group that has not answered Maintain in time. Later calls do not wait
// for it: delayed tasks of the other groups would start late.
type slow struct {
	err     atomic.Pointer[error] // of its last answer; nil after a good one
	probing atomic.Bool           // a goroutine asks it
}

// Maintain is as [queue.Store] says; limit holds for each group. A group that does not answer
// within 3 s is asked again a second later, and from then on later calls do not wait for its
// answers until it has given one. Its error is returned if no group answers.
func (s *Store) Maintain(ctx context.Context, now time.Time, limit int) (next time.Time, err error) {
	var mu sync.Mutex // guards answered and next
	answered := 0
	soonest := func(at time.Time) {
		if next.IsZero() || !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	err = s.each(s.all(), func(g int) error {
		if why := s.slow[g].err.Load(); why != nil {
			s.probe(ctx, g, now, limit)
			return *why
		}
		at, err := s.maintain(ctx, g, now, limit)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		answered++
		soonest(at)
		return nil
	})
	if err == nil {
		return next, nil
	}
	if answered == 0 || ctx.Err() != nil || errors.Is(err, queue.ErrInvalid) || errors.Is(err, queue.ErrClosed) {
		return time.Time{}, err
	}
	soonest(now.Add(time.Second))
	return next, nil
}

// maintain is Maintain of a group, and records whether it is slow.
func (s *Store) maintain(ctx context.Context, g int, now time.Time, limit int) (time.Time, error) {
	part, stop := partOf(ctx, len(s.stores))
	defer stop()
	next, err := s.stores[g].Maintain(part, now, limit)
	switch {
	case err == nil:
		s.slow[g].err.Store(nil)
	case len(s.stores) > 1 && ctx.Err() == nil && errors.Is(err, queue.ErrUnavailable):
		s.slow[g].err.Store(&err)
	}
	return next, err
}

// probe asks a slow group in the background, unless that is being done or the store is closed. The end
// of the call does not end it.
func (s *Store) probe(ctx context.Context, g int, now time.Time, limit int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || !s.slow[g].probing.CompareAndSwap(false, true) {
		return
	}
	s.probes.Go(func() {
		defer s.slow[g].probing.Store(false)
		_, _ = s.maintain(context.WithoutCancel(ctx), g, now, limit) // the error is recorded
	})
}
