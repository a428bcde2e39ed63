package queue

import (
	"context"
	"time"
)

// Admin is the calls of a [Store] that operators need: what is set for queues, the
// schedules, and the state of the whole. The contract of Store on time, durability,
// repetition and concurrency holds for them as well.
//
// Settings and schedules are small, so they are answered whole; tasks are answered in
// pages, by [Store.Find].
type Admin interface {
	// Explain returns why a task waits, the binding reason first: nothing if it runs
	// or is finished. Errors: ErrNotFound.
	Explain(ctx context.Context, now time.Time, id ID) ([]Reason, error)

	// Stats returns the counts of tasks, by queue and state, and the workers whose
	// heartbeats are recent.
	Stats(ctx context.Context, now time.Time) (Stats, error)

	// Configure changes some fields of the settings of a queue, or of all queues if
	// it is "", and no others; see [Change]. A limit that is lowered stops nothing that
	// runs. Errors: ErrInvalid, ErrChanged.
	Configure(ctx context.Context, now time.Time, queue string, c Change) error

	// PauseQueue pauses a queue, or all queues if it is "", and changes nothing else; nil
	// ends a pause. No task of a paused queue is claimed; those that run go on.
	PauseQueue(ctx context.Context, now time.Time, queue string, p *Pause) error

	// Settings returns the settings and the pause of each queue that has any, by its
	// name, and under "" those of all queues.
	Settings(ctx context.Context) (map[string]Configured, error)

	// Schedules returns all schedules, in the order of their names. Like Find it may
	// return what is not durable yet.
	Schedules(ctx context.Context) ([]ScheduleState, error)

	// Reschedule changes a schedule from the version that the caller has seen, and
	// submits tasks as Submit does: both or nothing. So of all callers that have seen a
	// version exactly one makes the next. A store does not parse cron expressions and
	// keeps the times that it is given; it checks names, and that Task could be submitted.
	// A call whose To is there already, or whose To is nil while there is no schedule of
	// that name, is answered nil and changes nothing. Errors: ErrChanged if the version is
	// another, and those of Submit.
	Reschedule(ctx context.Context, now time.Time, r Reschedule) error
}
