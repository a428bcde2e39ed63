package core

import (
	"context"
	"sync/atomic"

	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/stintgo/stint"
	"golang.org/x/sync/semaphore"

	"github.com/stintgo/stint/bench/measure"
)

const freeSlots = 100

// freeSlot measures the cost of a limit that is never reached. The loops are
// written out, since calling through a function value costs as much as a
// quarter of the work.
func freeSlot() measure.Case {
	return measure.Case{
		Name: "acquire + release, free slot, cancellable context, one goroutine",
		Ours: ours,
		Goals: []string{
			"time ≤ 0.75× " + xsync,
			"allocs ≤ 0",
		},
		Subjects: []measure.Subject{
			{Name: "compare-and-swap (floor)", Loop: freeCAS},
			{Name: ours, Loop: freeStint},
			{Name: "stint, tier given by At", Loop: freeStintAt},
			{Name: xsync, Loop: freeXSync},
			{Name: channels, Loop: freeChannel},
			{Name: failsafe, Loop: freeFailsafe},
		},
	}
}

// freeCAS is the lower bound of the cost of a limit: one word that is compared and
// swapped on the way in and on the way out.
func freeCAS(*measure.Stage) measure.Loop {
	var running atomic.Int64
	return func(n int) int {
		done := 0
		for range n {
			for {
				r := running.Load()
				if r < freeSlots && running.CompareAndSwap(r, r+1) {
					break
				}
			}
			done++
			for {
				r := running.Load()
				if running.CompareAndSwap(r, r-1) {
					break
				}
			}
		}
		return done
	}
}

func freeStint(st *measure.Stage) measure.Loop {
	return acquireLoop(cancellable(st), scheduler(st, freeSlots))
}

func freeStintAt(st *measure.Stage) measure.Loop {
	return acquireLoop(cancellable(st), scheduler(st, freeSlots).At(stint.High))
}

func acquireLoop(ctx context.Context, s stint.Scheduler) measure.Loop {
	return func(n int) int {
		done := 0
		for range n {
			if p, err := s.Acquire(ctx); err == nil {
				done++
				p.Release()
			}
		}
		return done
	}
}

func freeXSync(st *measure.Stage) measure.Loop {
	ctx, sem := cancellable(st), semaphore.NewWeighted(freeSlots)
	return func(n int) int {
		done := 0
		for range n {
			if sem.Acquire(ctx, 1) == nil {
				done++
				sem.Release(1)
			}
		}
		return done
	}
}

func freeChannel(st *measure.Stage) measure.Loop {
	ctx, slots := cancellable(st), make(chan struct{}, freeSlots)
	return func(n int) int {
		done := 0
		for range n {
			select {
			case slots <- struct{}{}:
				done++
				<-slots
			case <-ctx.Done():
			}
		}
		return done
	}
}

func freeFailsafe(st *measure.Stage) measure.Loop {
	ctx, b := cancellable(st), bulkhead.New[any](freeSlots)
	return func(n int) int {
		done := 0
		for range n {
			if b.AcquirePermit(ctx) == nil {
				done++
				b.ReleasePermit()
			}
		}
		return done
	}
}
