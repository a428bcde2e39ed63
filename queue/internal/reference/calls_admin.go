package reference

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Command implements queue.Store.
func (s *Store) Command(_ context.Context, now time.Time, c queue.Command) (changed int, err error) {
	if err := cmp.Or(s.check.command(&c), c.Validate(), s.check.edit(&c)); err != nil {
		return 0, err
	}
	end, err := s.begin(now)
	if err != nil {
		return 0, err
	}
	defer end()
	// What a command changes must not decide which other tasks it reaches: so it forgets
	// only tasks that were finished before.
	found := s.finder.matching(s.now, &c.Filter)
	if c.Do == queue.OrderForget {
		found = slices.DeleteFunc(found, func(t *Task) bool { return !t.State.Finished() })
	}
	for _, t := range found {
		if c.Limit > 0 && changed == c.Limit {
			break
		}
		if s.changes.command(s.now, t, &c) {
			changed++
			s.changes.revise(s.now)
		}
	}
	s.listeners.signal()
	return changed, nil
}

// Configure implements queue.Store.
func (s *Store) Configure(_ context.Context, now time.Time, name string, c queue.Change) error {
	if err := c.Validate(name); err != nil {
		return err
	}
	end, err := s.begin(now)
	if err != nil {
		return err
	}
	defer end()
	changed, err := s.rules.Configure(s.now, name, c)
	if changed {
		s.total.again(s.now)
		s.listeners.signal()
	}
	return err
}

// PauseQueue implements queue.Store.
func (s *Store) PauseQueue(_ context.Context, now time.Time, name string, p *queue.Pause) error {
	if err := p.Validate(); err != nil {
		return err
	}
	end, err := s.begin(now)
	if err != nil {
		return err
	}
	defer end()
	s.rules.Settings.Pause(s.now, name, p)
	s.listeners.signal()
	return nil
}

// Settings implements queue.Store.
func (s *Store) Settings(context.Context) (map[string]queue.Configured, error) {
	end, err := s.begin(time.Time{})
	if err != nil {
		return nil, err
	}
	defer end()
	return s.rules.Settings.all(), nil
}

// Schedules implements queue.Store.
func (s *Store) Schedules(context.Context) ([]queue.ScheduleState, error) {
	end, err := s.begin(time.Time{})
	if err != nil {
		return nil, err
	}
	defer end()
	return s.schedules.all()
}

// Reschedule implements queue.Store.
func (s *Store) Reschedule(_ context.Context, now time.Time, r queue.Reschedule) error {
	if err := s.check.reschedule(&r); err != nil {
		return err
	}
	end, err := s.begin(now)
	if err != nil {
		return err
	}
	defer end()
	is, err := s.schedules.get(r.Name)
	if err != nil {
		return err
	}
	if changes, err := Reschedules(is, &r); !changes {
		return err
	}
	if _, err := s.submit(r.Tasks); err != nil {
		return err
	}
	return s.schedules.set(r.Name, r.To)
}
