package core

import (
	"context"

	"github.com/alitto/pond/v2"
	fs "github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/bulkhead"
	"github.com/gammazero/workerpool"
	"github.com/panjf2000/ants/v2"
	"github.com/stintgo/stint"
	"golang.org/x/sync/semaphore"

	"github.com/stintgo/stint/bench/measure"
)

const runLimit = 4

// blockingRun is one function call under a limit, with its value. Pools pay
// for two goroutine switches; subjects that run it on the
// caller's goroutine do not.
func blockingRun() measure.Case {
	return measure.Case{
		Name: "blocking Run with a value",
		Ours: ours,
		Goals: []string{
			"time ≤ 2.5× " + xsync,
			"time ≤ 0.12× " + failsafe,
			"time ≤ 0.12× " + antsPool,
			"time ≤ 0.12× " + gammazer,
			"time ≤ 0.12× " + pondPool,
		},
		Subjects: []measure.Subject{
			{Name: ours, Loop: runStint},
			{Name: "stint, RunWith", Loop: runStintWith},
			{Name: xsync, Loop: runXSync},
			{Name: failsafe, Loop: runFailsafe},
			{Name: antsPool, Loop: runAnts},
			{Name: gammazer, Loop: runGammazero},
			{Name: pondPool, Loop: runPond},
		},
	}
}

// answer is the task: a value that the loops below expect back.
const answer = 42

func task(context.Context) (int, error) { return answer, nil }

func taskOf(_ context.Context, arg int) (int, error) { return arg, nil }

func runStint(st *measure.Stage) measure.Loop {
	ctx, s := cancellable(st), scheduler(st, runLimit)
	return answers(func() (int, error) { return stint.Run(ctx, s, task) })
}

func runStintWith(st *measure.Stage) measure.Loop {
	ctx, s := cancellable(st), scheduler(st, runLimit)
	return answers(func() (int, error) { return stint.RunWith(ctx, s, taskOf, answer) })
}

func runXSync(st *measure.Stage) measure.Loop {
	ctx, sem := cancellable(st), semaphore.NewWeighted(runLimit)
	return answers(func() (int, error) {
		if err := sem.Acquire(ctx, 1); err != nil {
			return 0, err
		}
		// A deferred release is what survives a panic of the task.
		defer sem.Release(1)
		return task(ctx)
	})
}

func runFailsafe(st *measure.Stage) measure.Loop {
	ctx := cancellable(st)
	// A bulkhead refuses when it is full, unless it is given a time to wait.
	executor := fs.With(bulkhead.New[int](runLimit)).WithContext(ctx)
	return answers(func() (int, error) {
		return executor.GetWithExecution(func(e fs.Execution[int]) (int, error) { return task(e.Context()) })
	})
}

func runAnts(st *measure.Stage) measure.Loop {
	ctx := cancellable(st)
	pool, err := ants.NewPool(runLimit)
	if err != nil {
		panic(err)
	}
	st.Cleanup(pool.Release)
	// ants returns no values and does not wait for functions; its users add a channel.
	value := make(chan int, 1)
	run := func() {
		v, _ := task(ctx)
		value <- v
	}
	return answers(func() (int, error) {
		if err := pool.Submit(run); err != nil {
			return 0, err
		}
		return <-value, nil
	})
}

func runGammazero(st *measure.Stage) measure.Loop {
	ctx := cancellable(st)
	pool := workerpool.New(runLimit)
	st.Cleanup(pool.StopWait)
	var value int
	run := func() { value, _ = task(ctx) }
	return answers(func() (int, error) {
		err := pool.DoWait(run)
		return value, err
	})
}

func runPond(st *measure.Stage) measure.Loop {
	ctx := cancellable(st)
	pool := pond.NewResultPool[int](runLimit)
	st.Cleanup(pool.StopAndWait)
	run := func() (int, error) { return task(ctx) }
	return answers(func() (int, error) { return pool.SubmitErr(run).Wait() })
}

// answers calls run n times and counts the right values.
func answers(run func() (int, error)) measure.Loop {
	return func(n int) int {
		done := 0
		for range n {
			if v, err := run(); err == nil && v == answer {
				done++
			}
		}
		return done
	}
}
