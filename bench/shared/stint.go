package shared

import (
	"context"
	"path/filepath"
	"sync/atomic"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// bareWord is what a pair cannot cost less than: one word that is compared and
// swapped on the way in, and stored on the way out.
type bareWord struct{ word *atomic.Uint64 }

func openFloor(string, int, int) (limit, error) { return bareWord{new(atomic.Uint64)}, nil }

func (w bareWord) caller() (caller, error) { return w, nil }

func (w bareWord) acquire(stint.Priority) error { return w.burst(1) }

func (w bareWord) release() error { return nil }

func (w bareWord) burst(n int) error {
	for range n {
		if !w.word.CompareAndSwap(0, 1) {
			return stint.ErrNoSlot
		}
		w.word.Store(0)
	}
	return nil
}

func openRegion(dir string, slots int) (*shm.Slots, error) {
	r, err := shm.Open(filepath.Join(dir, "region"), shm.Geometry{Slots: []int{slots}})
	if err != nil {
		return nil, err
	}
	return r.Slots(0), nil // the region goes with the process
}

// aloneSlots are the slots without their scheduler, whose lock they want: for one
// goroutine, which cannot wait.
type aloneSlots struct {
	slots *shm.Slots
	grant stint.Grant
}

func openSlots(dir string, slots, _ int) (limit, error) {
	s, err := openRegion(dir, slots)
	if err != nil {
		return nil, err
	}
	s.Bind(func() {}, nil)
	return &aloneSlots{slots: s}, nil
}

func (a *aloneSlots) caller() (caller, error) { return a, nil }

func (a *aloneSlots) acquire(tier stint.Priority) (err error) {
	a.grant, err = a.slots.TryAcquire(tier)
	return err
}

func (a *aloneSlots) release() error {
	a.slots.Release(a.grant)
	return nil
}

func (a *aloneSlots) burst(n int) error {
	for range n {
		grant, err := a.slots.TryAcquire(stint.Normal)
		if err != nil {
			return err
		}
		a.slots.Release(grant)
	}
	return nil
}

// schedulerCaller goes through a scheduler, as users do, with a context that could
// be cancelled.
type schedulerCaller struct {
	ctx       context.Context    //nolint:containedctx // every call has the same
	cancel    context.CancelFunc // is never called
	scheduler stint.Scheduler
	permit    stint.Permit // what acquire took
}

func openScheduler(dir string, slots, _ int) (limit, error) {
	s, err := openRegion(dir, slots)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &schedulerCaller{ctx: ctx, cancel: cancel, scheduler: stint.New(slots, stint.Config{Slots: s})}, nil
}

func (s *schedulerCaller) caller() (caller, error) {
	return &schedulerCaller{ctx: s.ctx, cancel: s.cancel, scheduler: s.scheduler}, nil
}

func (s *schedulerCaller) acquire(tier stint.Priority) (err error) {
	s.permit, err = s.scheduler.At(tier).Acquire(s.ctx)
	return err
}

func (s *schedulerCaller) release() error {
	s.permit.Release()
	return nil
}

func (s *schedulerCaller) burst(n int) error {
	for range n {
		p, err := s.scheduler.Acquire(s.ctx)
		if err != nil {
			return err
		}
		p.Release()
	}
	return nil
}
