// Package core measures the scheduler against what Go programs bound their
// concurrency with today.
package core

import (
	"context"

	"github.com/stintgo/stint"

	"github.com/stintgo/stint/bench/measure"
)

// The names of the subjects, as tables and goals write them.
const (
	ours     = "stint"
	xsync    = "x/sync semaphore"
	channels = "channel + select"
	failsafe = "failsafe bulkhead"
	antsPool = "ants"
	pondPool = "pond"
	concPool = "conc"
	errGroup = "errgroup"
	gammazer = "gammazero workerpool"
)

// Cases are the rows of this suite.
func Cases() []measure.Case {
	cases := []measure.Case{freeSlot(), contended(), fifoOrder(), blockingRun()}
	cases = append(cases, emptyTasks(4, "1.2×"), emptyTasks(100, "0.8×"), emptyTasks(10_000, "0.35×"))
	for _, limit := range []int{4, 100, 10_000} {
		cases = append(cases, futures(limit))
	}
	return cases
}

// cancellable is a context as servers have it. A subject that looks at no
// context while nothing has to wait must not win by being given the empty one.
func cancellable(st *measure.Stage) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	st.Cleanup(cancel)
	return ctx
}

// scheduler has all seven tiers with a cap each: its speed is measured
// with the policy switched on.
func scheduler(st *measure.Stage, limit int) stint.Scheduler {
	share := func(percent int) int { return max(1, limit*percent/100) }
	s := stint.New(limit, stint.Config{Caps: stint.Caps{
		Lowest: share(40), Lower: share(50), Low: share(60),
		Normal: limit, High: limit, Higher: limit, Highest: limit,
	}})
	st.Cleanup(s.Close)
	return s
}
