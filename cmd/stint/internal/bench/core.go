package bench

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	stint "github.com/stintgo/stint"
)

// tiered returns a scheduler with caps, as real ones have, so that their cost is measured
// too.
func tiered(limit int) stint.Scheduler {
	return stint.New(limit, stint.Config{Caps: stint.Caps{Low: max(limit/2, 1)}})
}

func freeSlot(ctx context.Context, each time.Duration) ([]Row, error) {
	s := tiered(100)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var failed error
	ns := perOp(each, func(n int) {
		for range n {
			p, err := s.Acquire(ctx)
			if err != nil {
				failed = err
				return
			}
			p.Release()
		}
	})
	return []Row{{Name: "acquire and release, free slot", Value: ns, Unit: "ns"}}, failed
}

// callers is how many goroutines contend for slots.
const callers = 64

func contendedSlot(ctx context.Context, each time.Duration) ([]Row, error) {
	s := tiered(4)
	ns := perOp(each, func(n int) {
		var left atomic.Int64
		left.Store(int64(n))
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for left.Add(-1) >= 0 {
					if p, err := s.Acquire(ctx); err == nil {
						p.Release()
					}
				}
			})
		}
		wg.Wait()
	})
	return []Row{{Name: "acquire and release, 64 goroutines on 4 slots", Value: ns, Unit: "ns"}}, nil
}

func tasks(ctx context.Context, each time.Duration) ([]Row, error) {
	var rows []Row
	for _, c := range []struct {
		limit int
		name  string
	}{{4, "empty tasks, limit 4"}, {100, "empty tasks, limit 100"}} {
		s := tiered(c.limit)
		var failed error
		ns := perOp(each/2, func(n int) {
			if err := runEmpty(ctx, s, n); err != nil {
				failed = err
			}
		})
		if failed != nil {
			return nil, failed
		}
		rows = append(rows, Row{Name: c.name, Value: 1e9 / ns, Unit: "/s"})
	}
	return rows, nil
}

// runEmpty runs n tasks that do nothing.
func runEmpty(ctx context.Context, s stint.Scheduler, n int) error {
	g := stint.NewGroup(ctx, s)
	for range n {
		g.Go(func(context.Context) error { return nil })
	}
	return g.Wait()
}

func limiterTry(_ context.Context, each time.Duration) ([]Row, error) {
	l := stint.NewLimiter(1e9, stint.LimiterConfig{})
	ns := perOp(each, func(n int) {
		for range n {
			l.Try(1)
		}
	})
	return []Row{{Name: "limiter, take a token", Value: ns, Unit: "ns"}}, nil
}

// limiterRate is the rate of the measured limiter, in tokens per second.
const limiterRate = 100_000

// limiterAccuracy compares the number of tokens that a limiter gives to many callers with
// the number that its rate earns in the same time.
func limiterAccuracy(ctx context.Context, each time.Duration) ([]Row, error) {
	const capacity = limiterRate / 100
	l := stint.NewLimiter(limiterRate, stint.LimiterConfig{Capacity: capacity})
	l.Try(capacity) // begin with an empty bucket
	ctx, cancel := context.WithTimeout(ctx, max(each, time.Second))
	defer cancel()
	var taken atomic.Int64
	took := timed(func() {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for l.Wait(ctx, 1) == nil {
					taken.Add(1)
				}
			})
		}
		wg.Wait()
	})
	off := 100 * (float64(taken.Load())/(limiterRate*took.Seconds()) - 1)
	return []Row{{
		Name: "limiter, off its rate", Value: off, Unit: "%", Note: "8 callers at 100,000/s; what its capacity holds is 1 %",
	}}, nil
}
