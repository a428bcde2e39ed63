package reference

import (
	"context"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
)

// Find implements queue.Store.
func (s *Store) Find(_ context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	end, err := s.begin(time.Time{})
	if err != nil {
		return nil, err
	}
	defer end()
	return s.finder.page(s.now, &f, p), nil
}

// All returns all tasks, in the order of their IDs, whether or not the store is closed.
func (s *Store) All() (all []queue.Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.finder.matching(s.now, &queue.Filter{}) {
		all = append(all, s.finder.view(s.now, t))
	}
	return all
}

// Explain implements queue.Store.
func (s *Store) Explain(_ context.Context, now time.Time, id queue.ID) ([]queue.Reason, error) {
	end, err := s.begin(time.Time{})
	if err != nil {
		return nil, err
	}
	defer end()
	t := s.rules.Tasks.Get(id)
	if t == nil {
		return nil, fmt.Errorf("%w: %s", queue.ErrNotFound, id)
	}
	return s.reasons.explain(s.at(now), t), nil
}

// Stats implements queue.Store.
func (s *Store) Stats(_ context.Context, now time.Time) (queue.Stats, error) {
	end, err := s.begin(time.Time{})
	if err != nil {
		return queue.Stats{}, err
	}
	defer end()
	stats := s.counter.stats(s.at(now))
	stats.Workers = s.workers.living(s.at(now))
	return stats, nil
}

// Watch implements queue.Store.
func (s *Store) Watch(ctx context.Context, begun func(), fn func(queue.Event)) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return queue.ErrClosed
	}
	w := s.watchers.add()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchers.remove(w)
	}()
	begun()
	for {
		s.mu.Lock()
		events, closed := w.events, s.closed
		w.events = nil
		s.mu.Unlock()
		for _, e := range events {
			fn(e)
		}
		if closed {
			return queue.ErrClosed
		}
		select {
		case <-w.woken:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
