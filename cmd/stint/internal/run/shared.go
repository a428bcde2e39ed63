package run

import (
	"sync/atomic"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
)

// shared are the slots that a run has together with other processes. Once the
// run stops, its jobs that wait get slots that are nobody's: they have to come to
// their end, nothing of them is to start, and others may keep theirs for long.
type shared struct {
	stint.Slots
	notify  func() // written before the run begins
	stopped atomic.Bool

	given stint.Grant // the last one that was nobody's; guarded by the scheduler's lock
}

var _ stint.Slots = (*shared)(nil)

// nobodys marks a grant that is nobody's.
const nobodys stint.Grant = 1 << 63

// Bind keeps how the scheduler is told of slots.
func (s *shared) Bind(notify func(), lost func(stint.Grant, error)) {
	s.notify = notify
	s.Slots.Bind(notify, lost)
}

// TryAcquire takes a slot.
func (s *shared) TryAcquire(tier stint.Priority) (stint.Grant, error) {
	if !s.stopped.Load() {
		return s.Slots.TryAcquire(tier)
	}
	s.given++
	return nobodys | s.given, nil
}

// Release gives a slot back.
func (s *shared) Release(grant stint.Grant) {
	if grant&nobodys == 0 {
		s.Slots.Release(grant)
	}
}

// Want says who waits.
func (s *shared) Want(tier stint.Priority, waiting int) {
	if s.stopped.Load() {
		waiting = 0
	}
	s.Slots.Want(tier, waiting)
}

// stop is called when nothing is to start any more. A nil shared has no slots.
func (s *shared) stop() {
	if s != nil {
		s.stopped.Store(true)
		s.notify()
	}
}

// newScheduler makes the scheduler, and the slots that it shares, if it does.
func newScheduler(cfg *Config) (stint.Scheduler, *shared) {
	limits := stint.Config{PerKey: cfg.KeyJobs, Queue: cfg.Lookahead}
	if cfg.Slots == nil {
		return stint.New(cfg.Jobs, limits), nil
	}
	slots := &shared{Slots: cfg.Slots}
	limits.Slots = slots
	sched := stint.New(cfg.Jobs, limits)
	cfg.Meter.Share(func() progress.Shared { return shares(sched.Stats()) })
	return sched, slots
}

// shares is what a run's progress says of shared slots.
func shares(s stint.Stats) progress.Shared {
	others := max(s.Shared.Running-s.Running, 0)
	full := others > 0 && s.Shared.Running >= s.Shared.Max
	return progress.Shared{Max: s.Shared.Max, Others: others, Waits: s.Queued > 0 && s.Running < s.Limit && full}
}
