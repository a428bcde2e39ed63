package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Schedule submits a task at each tick of a cron expression, exactly once for
// each tick over all processes that Run a queue of the store it is kept in.
// [Queue.Schedule] makes one; docs/schedules.md is the guide. A schedule that a store
// keeps is a [ScheduleState].
type Schedule struct {
	// Name is the schedule's in its store. It is also a label of its tasks.
	Name string `json:"name"`
	// Cron says when it ticks; package cron has the form.
	Cron string `json:"cron"`
	// Zone is the time zone that Cron is read in, by its name in the IANA database,
	// as Europe/Berlin: UTC if it is empty.
	Zone string `json:"zone,omitempty"`
	// Missed is what to do about ticks that came while no process looked:
	// [MissedOnce] if it is empty.
	Missed Missed `json:"missed,omitempty"`
	// SkipOverlap leaves out a tick if the task of the last one is unfinished.
	SkipOverlap bool `json:"skip_overlap,omitempty"`
	// Task is what is submitted. It starts at once, under the limits and in the
	// order of its queue, so it has no times of its own.
	Task Spec `json:"task"`
	// Paused is set while the schedule is paused. Ticks that come meanwhile are left out,
	// and are not missed.
	Paused *Pause `json:"paused,omitempty"`
}

// ScheduleState is a schedule as a store keeps it: what its user has set, and how far it
// has come. The process that changes the schedule sets all of it.
type ScheduleState struct {
	Schedule

	// Version names this state of the schedule. Each change makes a new one.
	Version ID `json:"version,omitzero"`
	// Next is the tick that comes next, and has come if it is past; zero if there
	// is none.
	Next time.Time `json:"next,omitzero"`
	// Last is the last tick that a task was submitted for.
	Last Tick `json:"last,omitzero"`
	// Error is why no task could be submitted for the tick that came last; empty
	// once one was.
	Error string `json:"error,omitempty"`
	// Retry is when to try that again.
	Retry time.Time `json:"retry,omitzero"`
}

// Tick is a tick that a task was submitted for.
type Tick struct {
	At   time.Time `json:"at"`
	Task ID        `json:"task"`
}

// Missed is a policy for ticks that were missed. When a process looks, several
// ticks of a schedule may have come since the last one that was dealt with. The
// newest is on time if it is not older than [TickGrace]; all before it are missed.
type Missed string

// The policies.
const (
	// MissedOnce makes up for all missed ticks by one task, that of the newest
	// tick: also if that is on time, so there is one task after any standstill.
	MissedOnce Missed = "once"
	// MissedSkip leaves missed ticks out.
	MissedSkip Missed = "skip"
	// MissedAll submits a task for each missed tick, the oldest first, but for no
	// more than the newest [MissedMax]; those before are left out.
	MissedAll Missed = "all"
)

const (
	// TickGrace is how late a tick may be and still be on time.
	TickGrace = time.Minute
	// MissedMax is for how many ticks that have come [MissedAll] submits tasks.
	MissedMax = 1000
)

// Reschedule is one change of one schedule.
type Reschedule struct {
	Name string `json:"name"`
	// Was is the version that is changed; zero if there is to be no schedule of
	// that name yet.
	Was ID `json:"was,omitzero"`
	// To is what it becomes, with a new Version that the caller has made; nil if
	// it is removed.
	To *ScheduleState `json:"to,omitempty"`
	// Tasks are submitted by the same step.
	Tasks []NewTask `json:"tasks,omitempty"`
}

// The labels of a schedule's tasks.
const (
	// LabelSchedule is the name of the schedule.
	LabelSchedule = "schedule"
	// LabelTick is the tick, as RFC 3339 has it, in the schedule's zone.
	LabelTick = "tick"
)

// Tick returns the tick that a schedule has submitted the task for, with the
// offset of the schedule's zone from UTC. It reports false for other tasks.
func (t *Task) Tick() (at time.Time, ok bool) {
	if t.Labels[LabelSchedule] == "" {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, t.Labels[LabelTick])
	return at, err == nil
}

// task is the task of a tick.
func (s *Schedule) task(id ID, tick time.Time) NewTask {
	t := NewTask{ID: id, Spec: s.Task}
	t.Labels = maps.Clone(t.Labels)
	if t.Labels == nil {
		t.Labels = make(map[string]string)
	}
	t.Labels[LabelSchedule], t.Labels[LabelTick] = s.Name, tick.Format(time.RFC3339)
	return t
}

// check finds what a schedule cannot be, and what its tasks cannot have.
func (s *Schedule) check() (timetable, error) {
	table, err := s.timetable()
	errs := []error{err}
	refuse := func(wrong bool, why string) {
		if wrong {
			errs = append(errs, fmt.Errorf("%w: %s", ErrInvalid, why))
		}
	}
	refuse(s.Name == "", "it has no name")
	refuse(s.SkipOverlap && s.Missed == MissedAll,
		"one that skips ticks while its last task is unfinished cannot make up for all that were missed: take once or skip")
	t := &s.Task
	refuse(!t.RunAt.IsZero() || !t.Deadline.IsZero(), "its task has a run_at or a deadline: cron says when it starts")
	refuse(t.Unique != "", "its task has a unique key: each tick is submitted once, and skip_overlap is for the rest")
	refuse(len(t.After)+len(t.AfterAny) > 0 || !t.Batch.IsZero() || !t.AfterBatch.IsZero(),
		"its task is of a batch or comes after others: it could do so once, so let its handler submit such tasks")
	_, named := t.Labels[LabelSchedule]
	_, ticked := t.Labels[LabelTick]
	refuse(named || ticked, "its task has a label that ticks set: rename "+LabelSchedule+" and "+LabelTick)
	return table, errors.Join(errs...)
}

// sameAs reports whether two schedules are the same in all that users set.
func (s *Schedule) sameAs(other *Schedule) (bool, error) {
	var texts [2][]byte
	for i, one := range []*Schedule{s, other} {
		plain := Schedule{
			Cron: one.Cron, Zone: one.Zone, Missed: one.Missed, SkipOverlap: one.SkipOverlap, Task: one.Task, Paused: one.Paused,
		}
		if plain.Missed == MissedOnce {
			plain.Missed = ""
		}
		var err error
		if texts[i], err = json.Marshal(plain); err != nil {
			return false, fmt.Errorf("%w: schedule %q: %w", ErrInvalid, s.Name, err)
		}
	}
	return bytes.Equal(texts[0], texts[1]), nil
}
