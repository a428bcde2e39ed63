package reference

import (
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// Config is the limits of a store; all of them must be set.
type Config struct {
	MaxPayload, MaxResult, MaxCheckpoint int // bytes

	WatchBuffer int // events that a watcher may be behind
}

// Store is a queue.Store in memory that looks at all of its tasks for each decision. Its
// methods may be called from any goroutine.
type Store struct {
	check validator

	mu     sync.Mutex // guards all below, and is held for the whole of a call
	closed bool
	now    time.Time // the latest time of a call; before the first call, of the tasks
	tokens queue.Token
	opened *opening // before the first call of a store that was opened again

	rules     *Rules
	schedules schedules
	workers   workers
	watchers  *watchers
	listeners listeners
	total     *reservations
	order     *order
	changes   *transitions
	retention *retention
	finder    finder
	reasons   reasons
	counter   counter
	follower  follower
}

var _ queue.Store = (*Store)(nil)

// New returns a store without tasks.
func New(cfg Config) *Store { return newStore(cfg, NewRules()) }

func newStore(cfg Config, rules *Rules) *Store {
	s := &Store{
		check: validator{cfg}, rules: rules, schedules: make(schedules), workers: make(workers),
		watchers: &watchers{buffer: cfg.WatchBuffer}, listeners: make(listeners),
		total: &reservations{Rules: rules}, retention: &retention{Rules: rules}, finder: finder{rules},
	}
	s.order = &order{rules, s.total, make(map[string]*turns)}
	s.changes = &transitions{
		Rules: rules, order: s.order, total: s.total, watchers: s.watchers, ended: make(map[string]*queue.Ended),
	}
	s.reasons = reasons{rules, s.finder, s.total, s.workers}
	s.counter = counter{s.finder, s.changes.ended}
	s.follower = follower{s.order, make(map[string]*guard)}
	return s
}

// begin takes the lock for a call, and advances the time.
func (s *Store) begin(now time.Time) (end func(), err error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, queue.ErrClosed
	}
	if s.opened != nil && !now.IsZero() {
		s.open(now)
	}
	s.now = later(s.now, now)
	return s.mu.Unlock, nil
}

// at returns the time of a call that reads at time now. Such a call does not advance the
// time, and completes no opening.
func (s *Store) at(now time.Time) time.Time {
	if s.opened != nil && !now.IsZero() {
		return now
	}
	return later(s.now, now)
}

// Close implements queue.Store.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	for _, t := range s.rules.Tasks.local() {
		s.changes.release(s.now, t, queue.Step{On: queue.OnRelease, By: t.Lease.Worker, Token: t.Lease.Token})
		s.changes.revise(s.now)
	}
	s.shut()
	return nil
}

// shut ends all calls.
func (s *Store) shut() {
	s.closed = true
	s.watchers.wake()
}
