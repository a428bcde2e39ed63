package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// maxCron is the largest length of a cron expression in bytes.
const maxCron = 1000

// scheduleSet is the schedules, each in memory and in a row. A schedule in the set is not
// changed in place. The caller of each method holds the lock of the machine.
type scheduleSet struct {
	journal *journal.Journal

	byName map[string]queue.ScheduleState // not changed in place
}

// list returns all schedules in the order of their names. They share memory with the set.
func (s *scheduleSet) list() []queue.ScheduleState {
	all := make([]queue.ScheduleState, 0, len(s.byName))
	for _, name := range slices.Sorted(maps.Keys(s.byName)) {
		all = append(all, s.byName[name])
	}
	return all
}

// admits reports whether a change has to be made: not if it has been made already, as by
// an earlier call. The error is ErrChanged if the change is based on another version than
// the present one.
func (s *scheduleSet) admits(r *queue.Reschedule) (bool, error) {
	is, there := s.byName[r.Name]
	switch {
	case r.To == nil && !there, r.To != nil && there && r.To.Version == is.Version:
		return false, nil
	case is.Version != r.Was:
		return false, queue.ErrChanged
	}
	return true, nil
}

// put sets a schedule, or removes it if to is nil. value is its row.
func (s *scheduleSet) put(name string, to *queue.ScheduleState, value []byte) {
	if to == nil {
		delete(s.byName, name)
	} else {
		s.byName[name] = *to
	}
	s.journal.Set(rowSchedule+name, value, false)
}

// cloneSchedule copies a schedule, because callers of the store own their arguments and
// results.
func cloneSchedule(s *queue.ScheduleState) queue.ScheduleState {
	own := *s
	own.Paused = clonePause(s.Paused)
	own.Task = CloneSpec(&s.Task)
	return own
}

// CloneSpec returns a copy of s that shares no memory with it.
func CloneSpec(s *queue.Spec) queue.Spec {
	own := *s
	own.Payload = bytes.Clone(s.Payload)
	own.After, own.AfterAny = slices.Clone(s.After), slices.Clone(s.AfterAny)
	own.Labels = maps.Clone(s.Labels)
	return own
}

// ownSchedule replaces the schedule of a call by a copy, and returns its row.
func ownSchedule(r *queue.Reschedule) (value []byte, err error) {
	if r.To == nil {
		return nil, nil
	}
	own := cloneSchedule(r.To)
	r.To = &own
	if value, err = json.Marshal(own); err != nil {
		return nil, fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	return value, nil
}

// validateReschedule checks a change of a schedule.
func validateReschedule(r *queue.Reschedule, maxPayload int) error {
	errs := []error{checkName("name", r.Name)}
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{queue.ErrInvalid}, args...)...))
	}
	s := r.To
	switch {
	case s == nil && r.Was.IsZero():
		bad("a removal needs the present version of the schedule in Was")
	case s == nil && len(r.Tasks) > 0:
		bad("a removal cannot submit tasks")
	case s == nil:
	case s.Name != r.Name:
		bad("it cannot be renamed to %q: add a schedule with that name, and remove this one", s.Name)
	case s.Version.IsZero() || s.Version == r.Was:
		bad("the change has no new version: set To.Version to a new ID")
	default:
		errs = append(errs, validateSchedule(s, maxPayload))
	}
	return errors.Join(errs...)
}

func validateSchedule(s *queue.ScheduleState, maxPayload int) error {
	var errs []error
	if s.Cron == "" || len(s.Cron) > maxCron {
		errs = append(errs, fmt.Errorf("%w: cron has %d bytes; it has 1 to %d", queue.ErrInvalid, len(s.Cron), maxCron))
	}
	if s.Zone != "" {
		errs = append(errs, checkName("zone", s.Zone))
	}
	switch s.Missed {
	case "", queue.MissedOnce, queue.MissedSkip, queue.MissedAll:
	default:
		errs = append(errs, fmt.Errorf("%w: missed is %.40q; it is %s, %s or %s", queue.ErrInvalid,
			s.Missed, queue.MissedOnce, queue.MissedSkip, queue.MissedAll))
	}
	if err := validateTask(&queue.NewTask{ID: s.Version, Spec: s.Task}, maxPayload); err != nil {
		errs = append(errs, fmt.Errorf("task: %w", err))
	}
	if err := s.Paused.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("paused: %w", err))
	}
	return errors.Join(errs...)
}

// load reads the rows of all schedules.
func (s *scheduleSet) load() error {
	return s.journal.Stored().Scan(rowSchedule, func(key string, value []byte) error {
		var is queue.ScheduleState
		if err := json.Unmarshal(value, &is); err != nil {
			return fmt.Errorf("the schedule %q: %w", key, err)
		}
		s.byName[key] = is
		return nil
	})
}
