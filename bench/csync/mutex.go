package csync

import (
	"sync"

	toolkit "github.com/stintgo/stint/csync"
	"golang.org/x/sync/semaphore"

	"github.com/stintgo/stint/bench/measure"
)

func mutex() measure.Case {
	return measure.Case{
		Name: "context mutex: lock + unlock, free, one goroutine",
		Ours: ours,
		Goals: []string{
			"time ≤ 0.7× " + semaphoreOne,
			"allocs ≤ 0",
		},
		Subjects: []measure.Subject{
			{Name: "sync.Mutex, no context (floor)", Loop: lockSync},
			{Name: ours, Loop: lockStint},
			{Name: semaphoreOne, Loop: lockSemaphore},
			{Name: channelOne, Loop: lockChannel},
		},
	}
}

func lockSync(*measure.Stage) measure.Loop {
	var mu sync.Mutex
	return func(n int) int {
		done := 0
		for range n {
			mu.Lock()
			done++
			mu.Unlock()
		}
		return done
	}
}

func lockStint(st *measure.Stage) measure.Loop {
	ctx := cancellable(st)
	var mu toolkit.Mutex
	return func(n int) int {
		done := 0
		for range n {
			if mu.Lock(ctx) == nil {
				done++
				mu.Unlock()
			}
		}
		return done
	}
}

func lockSemaphore(st *measure.Stage) measure.Loop {
	ctx, sem := cancellable(st), semaphore.NewWeighted(1)
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

func lockChannel(st *measure.Stage) measure.Loop {
	ctx, slot := cancellable(st), make(chan struct{}, 1)
	return func(n int) int {
		done := 0
		for range n {
			select {
			case slot <- struct{}{}:
				done++
				<-slot
			case <-ctx.Done():
			}
		}
		return done
	}
}
