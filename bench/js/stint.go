package js

import (
	"context"
	"fmt"

	"github.com/stintgo/stint"

	"github.com/stintgo/stint/bench/measure"
)

// twice times the second of two passes, as bench.mjs does.
func twice(pass func(n int) (int, error)) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		n := st.Size(tasks)
		var seconds float64
		for range 2 {
			start := measure.Now()
			done, err := pass(n)
			seconds = measure.Since(start).Seconds()
			if err == nil && done != n {
				err = fmt.Errorf("did %d of %d tasks", done, n)
			}
			if err != nil {
				return nil, err
			}
		}
		return measure.Values{rate: float64(n) / seconds}, nil
	}
}

func one(context.Context) (int, error) { return 1, nil }

// flood starts tasks as fast as it can and waits for the value of each.
func flood(n int) (int, error) {
	s := stint.New(atATime, stint.Config{})
	defer s.Close()
	return collect(n, func(ctx context.Context, _ int) *stint.Future[int] { return stint.Go(ctx, s, one) })
}

// pending has all tasks queued before the first one starts.
func pending(n int) (int, error) {
	s := stint.New(atATime, stint.Config{})
	defer s.Close()
	s.Pause("until everything is queued")
	return collect(n, func(ctx context.Context, i int) *stint.Future[int] {
		if i == n-1 {
			defer s.Resume()
		}
		tier := stint.Lowest + stint.Priority(i%stint.Tiers)
		return stint.Go(ctx, s.At(tier), one)
	})
}

func collect(n int, add func(ctx context.Context, i int) *stint.Future[int]) (int, error) {
	ctx := context.Background()
	held := make([]*stint.Future[int], n)
	for i := range held {
		held[i] = add(ctx, i)
	}
	sum := 0
	for _, f := range held {
		v, err := f.Wait(ctx)
		if err != nil {
			return sum, err
		}
		sum += v
	}
	return sum, nil
}
