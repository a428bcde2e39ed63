package run

import (
	"sync/atomic"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
)

// shared are slots that the run shares with other processes. Once the run stops,
// TryAcquire returns virtual grants, so that waiting jobs end at once: they start
// nothing, and other processes may hold their slots for long.
type shared struct {
	stint.Slots
	notify  func() // set before the run begins
	stopped atomic.Bool

	last stint.Grant // the last virtual grant; guarded by the scheduler's lock
}

var _ stint.Slots = (*shared)(nil)

// virtual marks a grant that holds no slot.
const virtual stint.Grant = 1 << 63

// Bind stores notify, and binds the slots to the scheduler.
func (s *shared) Bind(notify func(), lost func(stint.Grant, error)) {
	s.notify = notify
	s.Slots.Bind(notify, lost)
}

// TryAcquire takes a slot, or returns a virtual grant if the run has stopped.
func (s *shared) TryAcquire(tier stint.Priority) (stint.Grant, error) {
	if !s.stopped.Load() {
		return s.Slots.TryAcquire(tier)
	}
	s.last++
	return virtual | s.last, nil
}

// Release releases a slot.
func (s *shared) Release(grant stint.Grant) {
	if grant&virtual == 0 {
		s.Slots.Release(grant)
	}
}

// Want passes on how many jobs of a tier wait; none once the run has stopped.
func (s *shared) Want(tier stint.Priority, waiting int) {
	if s.stopped.Load() {
		waiting = 0
	}
	s.Slots.Want(tier, waiting)
}

// stop ends the waiting for slots when nothing is to start any more. A nil shared has no
// slots.
func (s *shared) stop() {
	if s != nil {
		s.stopped.Store(true)
		s.notify()
	}
}

// newScheduler returns the scheduler, and its shared slots or nil.
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

// shares returns the progress report of shared slots.
func shares(s stint.Stats) progress.Shared {
	others := max(s.Shared.Running-s.Running, 0)
	full := others > 0 && s.Shared.Running >= s.Shared.Max
	return progress.Shared{Max: s.Shared.Max, Others: others, Waits: s.Queued > 0 && s.Running < s.Limit && full}
}
