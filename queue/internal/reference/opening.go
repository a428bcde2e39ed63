package reference

import (
	"maps"
	"time"

	"github.com/stintgo/stint/queue"
)

// opening is what the first call of a store that was opened again completes.
type opening struct {
	resumed []*Task // their leases begin anew
	lost    []*Task // the steps of their losses get the time of the call
	spent   *Rates  // what was spent when the store was closed; nil after a crash
}

// Reopen ends the store as the end of its process does, and returns a store with what is
// left: not the workers, the watchers or, unless the store was closed, what rates have spent.
func (s *Store) Reopen() *Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	again := newStore(s.check.cfg, s.rules.reopened())
	again.opened, again.tokens, again.changes.endings = &opening{}, s.tokens, s.changes.endings
	again.schedules = maps.Clone(s.schedules)
	if s.closed {
		again.opened.spent = s.rules.Rates.spentAt(s.now)
		if s.opened != nil { // there was no call
			again.opened.spent = s.opened.spent
		}
	}
	tasks := again.rules.Tasks
	again.now = tasks.latest()
	for _, t := range tasks.all {
		again.changes.endedOf(t.Queue)
		if t.State == queue.Running && t.remote > 0 {
			again.opened.resumed = append(again.opened.resumed, t)
			t.Renew(again.now)
		}
	}
	again.opened.lost = tasks.local()
	for _, t := range again.opened.lost {
		again.changes.lose(again.now, t)
		again.changes.revise(again.now)
	}
	s.shut()
	return again
}

// open does what waits for the first call: times that are later than the call are moved
// back, leases that outlived the store begin anew, and those that did not end now.
func (s *Store) open(now time.Time) {
	if back := s.now.Sub(now); back > 0 {
		s.rules.Tasks.SetBack(now, back)
	} else {
		s.retention.closed = [2]time.Time{s.now, now}
	}
	s.now = now
	if spent := s.opened.spent; spent != nil {
		s.rules.Rates.restore(now, spent)
	}
	for _, t := range s.opened.resumed {
		t.Renew(now)
	}
	for _, t := range s.opened.lost {
		for i := len(t.Steps) - 1; t.Steps[i].On != queue.OnClaim; i-- {
			t.Steps[i].At = now
		}
		t.Changed = now
	}
	s.opened = nil
}
