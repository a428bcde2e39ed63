package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// Schedule creates a schedule, or changes the schedule of that name to s. Every process
// may call it at its start: if no field differs, nothing changes. If Cron and Zone are
// the same, the schedule continues from its last tick, so that neither a deployment nor a
// downtime repeats or loses a tick; otherwise it begins with the first tick from now on.
// A paused schedule stays paused, and keeps its Pause; a schedule with Paused set is
// paused.
//
// Errors: [ErrInvalid] if s could never tick, or its tasks could not be submitted.
func (q *Queue) Schedule(ctx context.Context, s Schedule) error {
	table, err := s.check()
	if err != nil {
		return fmt.Errorf("schedule %q: %w", s.Name, err)
	}
	return q.schedules.change(ctx, s.Name, func(is *ScheduleState) (*ScheduleState, error) {
		to := ScheduleState{Schedule: s}
		if is == nil {
			to.Next = table.next(q.wall(), time.Time{})
			return &to, nil
		}
		to.Last, to.Next = is.Last, is.Next
		if is.Paused != nil {
			to.Paused = is.Paused
		}
		if is.Cron != to.Cron || is.Zone != to.Zone {
			to.Next = table.next(q.wall(), is.Last.At)
		} else if same, err := is.sameAs(&to.Schedule); same || err != nil {
			return is, err
		}
		return &to, nil
	})
}

// Unschedule removes a schedule. The tasks that it has submitted stay. Errors:
// ErrNotFound.
func (q *Queue) Unschedule(ctx context.Context, name string) error {
	return q.schedules.change(ctx, name, existing(name, func(*ScheduleState) (*ScheduleState, error) { return nil, nil }))
}

// Schedules returns all schedules of the store, sorted by name; with a [PartialError], those of the
// groups that answer.
func (q *Queue) Schedules(ctx context.Context) ([]ScheduleState, error) {
	return q.store.Schedules(ctx)
}

// PauseSchedule pauses a schedule until it is resumed; if p.Since is zero, the pause
// begins now. A schedule that is paused already is not changed. Errors: ErrNotFound.
func (q *Queue) PauseSchedule(ctx context.Context, name string, p Pause) error {
	if p.Since.IsZero() {
		p.Since = q.clock.Now()
	}
	return q.schedules.change(ctx, name, existing(name, func(is *ScheduleState) (*ScheduleState, error) {
		if is.Paused != nil {
			return is, nil
		}
		to := *is
		to.Paused = &p
		return &to, nil
	}))
}

// ResumeSchedule ends the pause of a schedule, which continues with the first tick from
// now on. Errors: ErrNotFound, and ErrInvalid if this process cannot compute its ticks.
func (q *Queue) ResumeSchedule(ctx context.Context, name string) error {
	return q.schedules.change(ctx, name, existing(name, func(is *ScheduleState) (*ScheduleState, error) {
		if is.Paused == nil {
			return is, nil
		}
		table, err := is.timetable()
		if err != nil {
			return nil, fmt.Errorf("schedule %q: %w", name, err)
		}
		to := *is
		to.Paused, to.Error, to.Retry = nil, "", time.Time{}
		to.Next = table.next(q.wall(), is.Last.At)
		return &to, nil
	}))
}

// TriggerSchedule submits a task of a schedule now. The schedule may be paused. It returns
// the ID of the task when the task is durable. The ticks of the schedule do not change, and
// SkipOverlap ignores the task. The task has the labels of a tick at the present time in the
// schedule's zone. Errors: ErrNotFound, [ErrInvalid] if this system lacks the zone, and those
// of [Queue.Submit]. It is not idempotent: each call submits a task.
func (q *Queue) TriggerSchedule(ctx context.Context, name string) (ID, error) {
	s, err := q.schedules.get(ctx, name)
	switch {
	case err != nil:
		return ID{}, err
	case s == nil:
		return ID{}, noSchedule(name)
	}
	table, err := s.timetable()
	if err != nil {
		return ID{}, fmt.Errorf("schedule %q: %w", name, err)
	}
	receipts, err := q.Submit(ctx, s.task(q.NewID(), q.wall().In(table.zone)))
	if err != nil {
		return ID{}, fmt.Errorf("trigger schedule %q: %w", name, err)
	}
	return receipts[0].ID, nil
}

func noSchedule(name string) error { return fmt.Errorf("%w: schedule %q", ErrNotFound, name) }

// scheduleChange returns the new state of a schedule: its argument if nothing changes, nil to
// remove the schedule. The argument is nil if there is no such schedule.
type scheduleChange func(is *ScheduleState) (to *ScheduleState, err error)

// existing returns a change of a schedule that must exist.
func existing(name string, c scheduleChange) scheduleChange {
	return func(is *ScheduleState) (*ScheduleState, error) {
		if is == nil {
			return nil, noSchedule(name)
		}
		return c(is)
	}
}

// schedules reads and changes the schedules of a store. Other processes do so too.
type schedules struct {
	store   Store
	clock   clock.Steady
	ids     *IDs          // of versions
	changed chan struct{} // signals that this process may have changed a schedule
}

// change changes a schedule. It computes the change again if another process was faster.
func (s *schedules) change(ctx context.Context, name string, c scheduleChange) error {
	for {
		r := Reschedule{Name: name}
		is, err := s.get(ctx, name)
		if err != nil {
			return err
		}
		if is != nil {
			r.Was = is.Version
		}
		if r.To, err = c(is); err != nil || r.To == is {
			return err
		}
		now := s.clock.Now()
		if r.To != nil {
			r.To.Version = s.ids.New(now)
		}
		if err = s.store.Reschedule(ctx, now, r); !errors.Is(err, ErrChanged) {
			signal(s.changed)
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// get returns the schedule of a name, nil if there is none. It may be among those that the store
// returns with an error.
func (s *schedules) get(ctx context.Context, name string) (*ScheduleState, error) {
	all, err := s.store.Schedules(ctx)
	if i := slices.IndexFunc(all, func(s ScheduleState) bool { return s.Name == name }); i >= 0 {
		return &all[i], nil
	}
	return nil, err
}
