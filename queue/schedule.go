package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"
)

// Schedule submits a task at each tick of a cron expression, exactly once for each tick
// over all processes that Run a queue of its store. [Queue.Schedule] creates one;
// docs/schedules.md is the guide. [ScheduleState] is a schedule as the store has it.
type Schedule struct {
	// Name identifies the schedule in its store. It is also a label of its tasks.
	Name string `json:"name"`
	// Cron is the cron expression; package cron documents the syntax.
	Cron string `json:"cron"`
	// Zone is the time zone of Cron, by its name in the IANA database, such as
	// Europe/Berlin. Empty is UTC.
	Zone string `json:"zone,omitempty"`
	// Missed is the policy for ticks that came while no process looked; empty is
	// [MissedOnce].
	Missed Missed `json:"missed,omitempty"`
	// SkipOverlap skips a tick if the task of the previous one is unfinished.
	SkipOverlap bool `json:"skip_overlap,omitempty"`
	// Task is submitted at each tick. It must not set RunAt or Deadline: it may start at
	// once, under the limits and in the order of its queue.
	Task Spec `json:"task"`
	// Paused is set while the schedule is paused. Ticks that come meanwhile are skipped,
	// and do not count as missed.
	Paused *Pause `json:"paused,omitempty"`
}

// ScheduleState is a schedule as a store has it: what its user has set, and its progress.
// The process that changes a schedule sets all of it.
type ScheduleState struct {
	Schedule

	// Version identifies this state of the schedule. Each change sets a new one.
	Version ID `json:"version,omitzero"`
	// Next is the next tick, which is due if it is in the past; zero if there is none.
	Next time.Time `json:"next,omitzero"`
	// Last is the last tick for which a task was submitted.
	Last Tick `json:"last,omitzero"`
	// Error is why no task could be submitted for the last tick; empty after one was.
	Error string `json:"error,omitempty"`
	// Retry is when to try to submit that task again.
	Retry time.Time `json:"retry,omitzero"`
}

// Tick is a tick for which a task was submitted.
type Tick struct {
	At   time.Time `json:"at"`
	Task ID        `json:"task"`
}

// Missed is a policy for missed ticks. When a process looks, several ticks of a schedule
// may have come since the last one that was handled. The newest is on time if it is not
// older than [TickGrace]; all ticks before it are missed.
type Missed string

// The policies.
const (
	// MissedOnce submits one task for all missed ticks together and the newest one, so
	// there is one task after any downtime.
	MissedOnce Missed = "once"
	// MissedSkip skips missed ticks.
	MissedSkip Missed = "skip"
	// MissedAll submits a task for each missed tick, the oldest first, but only for the
	// newest [MissedMax]; earlier ones are skipped.
	MissedAll Missed = "all"
)

const (
	// TickGrace is how late a tick may be and still count as on time.
	TickGrace = time.Minute
	// MissedMax is the largest number of due ticks for which [MissedAll] submits tasks.
	MissedMax = 1000
)

// Reschedule is one change of one schedule.
type Reschedule struct {
	Name string `json:"name"`
	// Was is the version to change; zero if no schedule of that name must exist.
	Was ID `json:"was,omitzero"`
	// To is the new state, with a new Version that the caller has made; nil removes the
	// schedule.
	To *ScheduleState `json:"to,omitempty"`
	// Tasks are submitted in the same step.
	Tasks []NewTask `json:"tasks,omitempty"`
}

// The labels of a schedule's tasks.
const (
	// LabelSchedule is the name of the schedule.
	LabelSchedule = "schedule"
	// LabelTick is the tick in RFC 3339, in the schedule's zone.
	LabelTick = "tick"
)

// Tick returns the tick for which a schedule has submitted the task, with the offset of
// the schedule's zone from UTC. It reports false for other tasks.
func (t *Task) Tick() (at time.Time, ok bool) {
	if t.Labels[LabelSchedule] == "" {
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, t.Labels[LabelTick])
	return at, err == nil
}

// task returns the task of a tick.
func (s *Schedule) task(id ID, tick time.Time) NewTask {
	t := NewTask{ID: id, Spec: s.Task}
	t.Labels = maps.Clone(t.Labels)
	if t.Labels == nil {
		t.Labels = make(map[string]string)
	}
	t.Labels[LabelSchedule], t.Labels[LabelTick] = s.Name, tick.Format(time.RFC3339)
	return t
}

// check returns the errors of a schedule and of its task.
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
	const most = MaxLabels - 2 // ticks set two more
	refuse(len(t.Labels) > most, fmt.Sprintf("its task has %d labels; at most %d are possible, "+
		"because each tick sets two more", len(t.Labels), most))
	refuse(named || ticked, "its task has a label that ticks set: rename "+LabelSchedule+" and "+LabelTick)
	return table, errors.Join(errs...)
}

// sameAs reports whether two schedules agree in all fields that users set.
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
