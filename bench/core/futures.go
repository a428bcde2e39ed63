package core

import (
	"context"
	"fmt"

	"github.com/alitto/pond/v2"
	"github.com/sourcegraph/conc/pool"
	"github.com/stintgo/stint"

	"github.com/stintgo/stint/bench/measure"
)

const (
	concResult = "conc result pool"
	pondGroup  = "pond result group"
	pondResult = "pond result pool"
)

// futures is the million tasks of emptyTasks, each with a value that is waited
// for and added up.
func futures(limit int) measure.Case {
	return measure.Case{
		Name: fmt.Sprintf("Go of 1,000,000 tasks with a value each, limit %d", limit),
		N:    manyTasks,
		Ours: ours,
		Goals: []string{
			"time ≤ 0.6× " + concResult,
			"time ≤ 0.25× " + pondResult,
			"allocs ≤ 1",
			"bytes ≤ 64",
		},
		Subjects: []measure.Subject{
			{Name: ours, Loop: futuresStint(limit)},
			{Name: concResult, Loop: futuresConc(limit)},
			{Name: pondGroup, Loop: futuresPondGroup(limit)},
			{Name: pondResult, Loop: futuresPond(limit)},
		},
	}
}

// Every task returns 1, so the sum is how many were done.
func one() int { return 1 }

func oneOf(context.Context) (int, error) { return 1, nil }

func futuresStint(limit int) starter {
	return func(st *measure.Stage) measure.Loop {
		ctx, s := cancellable(st), scheduler(st, limit)
		// The list belongs to the caller and is made beforehand, here and for
		// the pond pool, so that bytes for each task are the subject's own.
		held := make([]*stint.Future[int], 0, st.N)
		return func(n int) int {
			held = held[:0]
			for range n {
				held = append(held, stint.Go(ctx, s, oneOf))
			}
			sum := 0
			for i, f := range held {
				v, err := f.Wait(ctx)
				if err == nil {
					sum += v
				}
				held[i] = nil
			}
			return sum
		}
	}
}

func futuresConc(limit int) starter {
	return func(*measure.Stage) measure.Loop {
		return func(n int) int {
			p := pool.NewWithResults[int]().WithMaxGoroutines(limit)
			for range n {
				p.Go(one)
			}
			return sum(p.Wait())
		}
	}
}

func futuresPondGroup(limit int) starter {
	return func(st *measure.Stage) measure.Loop {
		p := pond.NewResultPool[int](limit)
		st.Cleanup(p.StopAndWait)
		return func(n int) int {
			g := p.NewGroup()
			for range n {
				g.Submit(one)
			}
			values, err := g.Wait()
			if err != nil {
				return 0
			}
			return sum(values)
		}
	}
}

func futuresPond(limit int) starter {
	return func(st *measure.Stage) measure.Loop {
		p := pond.NewResultPool[int](limit)
		st.Cleanup(p.StopAndWait)
		held := make([]pond.ResultTask[int], 0, st.N)
		return func(n int) int {
			held = held[:0]
			for range n {
				held = append(held, p.Submit(one))
			}
			total := 0
			for i, f := range held {
				if v, err := f.Wait(); err == nil {
					total += v
				}
				held[i] = nil
			}
			return total
		}
	}
}

func sum(values []int) int {
	total := 0
	for _, v := range values {
		total += v
	}
	return total
}
