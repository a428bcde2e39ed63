package queue

import (
	"context"
	"time"
)

// Admin has the calls of a [Store] about queues, schedules and the store as a whole. What
// Store documents about time, durability, repetition and concurrency holds for these
// methods as well.
//
// Settings and schedules are small, so one call returns all of them; [Store.Find] returns
// tasks in pages.
type Admin interface {
	// Stats returns the counts of tasks, by queue and state, and the workers whose
	// heartbeats are recent.
	Stats(ctx context.Context, now time.Time) (Stats, error)

	// Configure changes the fields of the settings of a queue that c names, or the defaults
	// of all queues if queue is ""; see [Change]. A lower limit does not stop running tasks.
	// Errors: ErrInvalid, ErrChanged.
	Configure(ctx context.Context, now time.Time, queue string, c Change) error

	// PauseQueue pauses a queue, or all queues if queue is "", and changes no other setting;
	// a nil p ends the pause. Tasks of a paused queue are not claimed; running tasks
	// continue.
	PauseQueue(ctx context.Context, now time.Time, queue string, p *Pause) error

	// Settings returns the settings and the pause of each queue that has any, by the name of
	// the queue, and under "" those of all queues. A store that consists of several may return those
	// of the stores that answer with a [PartialError].
	Settings(ctx context.Context) (map[string]Configured, error)

	// Schedules returns all schedules, sorted by name. Like Find, it may return changes that
	// are not durable yet. A store that consists of several may return those of the stores that
	// answer with a [PartialError].
	Schedules(ctx context.Context) ([]ScheduleState, error)

	// Reschedule changes a schedule if its version is still r.Was, and submits r.Tasks as
	// Submit does, in the same step. So exactly one of the callers that have read a version
	// makes the next. A store does not parse cron expressions, and keeps the times of r.To
	// as they are; it checks names, and that Task could be submitted. Reschedule changes
	// nothing and returns nil if the version of r.To is stored already, or if r.To is nil
	// and there is no schedule of that name. Errors: ErrChanged if the version differs, and
	// those of Submit.
	Reschedule(ctx context.Context, now time.Time, r Reschedule) error
}
