package machine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stintgo/stint/queue"
)

// Command is as [queue.Store] says.
func (m *Machine) Command(ctx context.Context, now time.Time, c queue.Command) (changed int, err error) {
	if err := cmp.Or(c.Validate(), validateEdit(&c)); err != nil {
		return 0, err
	}
	if c.Limit < 0 {
		return 0, fmt.Errorf("%w: the limit is %d; it is 0 for none, or more", queue.ErrInvalid, c.Limit)
	}
	s := newSearch(c.Filter, queue.ID{}, false)
	s.do, s.most = c.Do, maxFoundByCommand
	limit := cmp.Or(c.Limit, math.MaxInt)
	var (
		bad      unread
		cascades []*waiters // postponed until all tasks are found: a command must not find tasks that they cancel
	)
	for err == nil && (len(s.ids) > 0 || !s.done) && changed < limit {
		if len(s.ids) == 0 {
			if err = m.searchPart(s, func() error { return m.steps.beginChange(ctx, now) }); err != nil {
				break
			}
		}
		if err = m.steps.beginChange(ctx, now); err == nil {
			m.cascades.postponed = &cascades
			changed += m.commands.some(s, c, limit-changed, &bad)
			m.cascades.postponed = nil
			if len(s.ids) == 0 && s.done || changed >= limit {
				m.cascades.start(&cascades)
			}
			err = m.steps.end(ctx)
		}
	}
	if len(cascades) > 0 { // after an error
		m.beginCascades(&cascades)
	}
	return changed, cmp.Or(err, bad.err())
}

// beginCascades begins the cascades of a command that ended with an error. If the machine
// has been closed, its rows must not be read, and the next machine begins them.
func (m *Machine) beginCascades(cascades *[]*waiters) {
	m.steps.lockCorrected()
	defer m.steps.mu.Unlock()
	if !m.steps.closed.Load() {
		m.cascades.start(cascades)
		m.steps.seal()
	}
}

// Configure is as [queue.Store] says.
func (m *Machine) Configure(ctx context.Context, now time.Time, name string, c queue.Change) error {
	if err := errors.Join(validateName(name), validateKey(c.Key), c.Validate(name)); err != nil {
		return err
	}
	if err := m.steps.beginChange(ctx, now); err != nil {
		return err
	}
	return errors.Join(m.settings.alter(name, &c), m.steps.end(ctx))
}

// PauseQueue is as [queue.Store] says.
func (m *Machine) PauseQueue(ctx context.Context, now time.Time, name string, p *queue.Pause) error {
	if err := errors.Join(validateName(name), p.Validate()); err != nil {
		return err
	}
	if err := m.steps.beginChange(ctx, now); err != nil {
		return err
	}
	return errors.Join(m.settings.setPause(name, p), m.steps.end(ctx))
}

// Settings is as [queue.Store] says.
func (m *Machine) Settings(context.Context) (map[string]queue.Configured, error) {
	m.steps.mu.Lock()
	defer m.steps.mu.Unlock()
	if m.steps.closed.Load() {
		return nil, queue.ErrClosed
	}
	return m.settings.view(), nil
}

// Schedules is as [queue.Store] says.
func (m *Machine) Schedules(context.Context) ([]queue.ScheduleState, error) {
	m.steps.mu.Lock()
	if m.steps.closed.Load() {
		m.steps.mu.Unlock()
		return nil, queue.ErrClosed
	}
	all := m.scheduleSet.list()
	m.steps.mu.Unlock()
	for i := range all {
		all[i] = cloneSchedule(&all[i])
	}
	return all, nil
}

// Reschedule is as [queue.Store] says.
func (m *Machine) Reschedule(ctx context.Context, now time.Time, r queue.Reschedule) error {
	if err := validateReschedule(&r, m.cfg.MaxPayload); err != nil {
		return fmt.Errorf("schedule %q: %w", r.Name, err)
	}
	value, err := ownSchedule(&r)
	if err == nil && len(r.Tasks) > 0 { // checked refuses tasks if there is no room; a change without tasks needs none
		r.Tasks, err = m.submissions.checked(r.Tasks)
	}
	if err != nil {
		return fmt.Errorf("schedule %q: %w", r.Name, err)
	}
	prints := m.fingerprints.of(r.Tasks)
	if err := m.steps.beginChange(ctx, now); err != nil {
		return err
	}
	if err = m.reschedule(&r, value, prints); err != nil {
		err = fmt.Errorf("schedule %q: %w", r.Name, err)
	}
	if syncErr := m.steps.end(ctx); err == nil {
		err = syncErr
	}
	return err
}

// reschedule makes a change unless it has been made already. The error is ErrChanged if
// another change has been made since Was.
func (m *Machine) reschedule(r *queue.Reschedule, value []byte, prints []fingerprint) error {
	if open, err := m.scheduleSet.admits(r); !open {
		return err
	}
	if _, err := m.submissions.acceptAll(r.Tasks, prints); err != nil {
		return err
	}
	m.scheduleSet.put(r.Name, r.To, value)
	return nil
}
