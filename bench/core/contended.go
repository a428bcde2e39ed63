package core

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint"
	"golang.org/x/sync/semaphore"

	"github.com/stintgo/stint/bench/measure"
)

const (
	contenders     = 64
	contendedLimit = 4
)

// contended measures the cost of waiting: every acquire of every goroutine queues,
// because those that come back find the others still in the queue.
func contended() measure.Case {
	return measure.Case{
		Name: "64 goroutines, limit 4, every acquire waits",
		Ours: ours,
		Goals: []string{
			"time ≤ 0.7× " + xsync,
			"time ≤ 1× " + channels,
			"allocs ≤ 0",
		},
		Subjects: []measure.Subject{
			{Name: ours, Loop: contendedStint},
			{Name: xsync, Loop: contendedXSync},
			{Name: channels, Loop: contendedChannel},
		},
	}
}

func contendedStint(st *measure.Stage) measure.Loop {
	ctx, s := cancellable(st), scheduler(st, contendedLimit)
	return crowd(func() (stint.Permit, bool) {
		p, err := s.Acquire(ctx)
		return p, err == nil
	}, func(p stint.Permit) { p.Release() })
}

func contendedXSync(st *measure.Stage) measure.Loop {
	ctx, sem := cancellable(st), semaphore.NewWeighted(contendedLimit)
	return crowd(func() (int64, bool) { return 1, sem.Acquire(ctx, 1) == nil }, sem.Release)
}

func contendedChannel(st *measure.Stage) measure.Loop {
	ctx, slots := cancellable(st), make(chan struct{}, contendedLimit)
	return crowd(func() (none struct{}, ok bool) {
		select {
		case slots <- none:
			return none, true
		case <-ctx.Done():
			return none, false
		}
	}, func(struct{}) { <-slots })
}

// crowd takes all slots, waits until all goroutines are queued, and releases the
// slots. Otherwise each goroutine would finish its share before the next one is
// started, and none would ever wait.
func crowd[P any](acquire func() (P, bool), release func(P)) measure.Loop {
	return func(n int) int {
		var first []P
		for range contendedLimit {
			p, _ := acquire()
			first = append(first, p)
		}
		var arrived atomic.Int64
		var opened sync.WaitGroup
		opened.Go(func() {
			for arrived.Load() < contenders {
				runtime.Gosched()
			}
			// The last to arrive is between counting itself and queueing.
			time.Sleep(100 * time.Microsecond)
			for _, p := range first {
				release(p)
			}
		})
		done := measure.Spread(n, contenders, func(_, share int) int {
			arrived.Add(1)
			did := 0
			for range share {
				if p, ok := acquire(); ok {
					did++
					release(p)
				}
			}
			return did
		})
		opened.Wait()
		return done
	}
}

// fifoOrder shows that the speed of the case above does not come from another
// order: entries that queued one after the other must be served so.
func fifoOrder() measure.Case {
	return measure.Case{
		Name:     "64 waiters of one tier, served in the order in which they came",
		Ours:     ours,
		Readings: []measure.Reading{{Name: "out of order", Unit: "waiters"}},
		Goals:    []string{"out of order ≤ 0"},
		Subjects: []measure.Subject{{Name: ours, Probe: fifoStint}},
	}
}

func fifoStint(st *measure.Stage) (measure.Values, error) {
	ctx, s := cancellable(st), scheduler(st, 1)
	first, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	var served []int // guarded by the one slot
	var all sync.WaitGroup
	for i := range contenders {
		all.Go(func() {
			if p, err := s.Acquire(ctx); err == nil {
				served = append(served, i)
				p.Release()
			}
		})
		for s.Stats().Queued <= i {
			runtime.Gosched()
		}
	}
	first.Release()
	all.Wait()
	wrong := contenders - len(served)
	for place, goroutine := range served {
		if place != goroutine {
			wrong++
		}
	}
	return measure.Values{"out of order": float64(wrong)}, nil
}
