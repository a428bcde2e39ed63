package core

import (
	"fmt"
	"sync"

	"github.com/alitto/pond/v2"
	"github.com/panjf2000/ants/v2"
	"github.com/sourcegraph/conc/pool"
	"github.com/stintgo/stint"
	"golang.org/x/sync/errgroup"

	"github.com/stintgo/stint/bench/measure"
)

const (
	manyTasks = 1_000_000
	workers   = "channel workers"
)

// emptyTasks measures only what it costs to hand a task to another goroutine. All
// subjects take one function value a million times.
func emptyTasks(limit int, goal string) measure.Case {
	return measure.Case{
		Name:  fmt.Sprintf("Go of 1,000,000 empty tasks, limit %d", limit),
		N:     manyTasks,
		Ours:  ours,
		Goals: []string{"time ≤ " + goal + " " + pondPool, "bytes ≤ 48", "allocs ≤ 0"},
		Subjects: []measure.Subject{
			{Name: ours, Loop: emptyStint(limit)},
			{Name: workers, Loop: emptyChannel(limit)},
			{Name: pondPool, Loop: emptyPond(limit)},
			{Name: concPool, Loop: emptyConc(limit)},
			{Name: errGroup, Loop: emptyErrgroup(limit)},
			{Name: antsPool, Loop: emptyAnts(limit)},
		},
	}
}

type starter func(*measure.Stage) measure.Loop

func emptyStint(limit int) starter {
	return func(st *measure.Stage) measure.Loop {
		ctx, s := cancellable(st), scheduler(st, limit)
		t := newTally(st)
		run := t.withContext()
		return func(n int) int {
			g := stint.NewGroup(ctx, s)
			for range n {
				g.Go(run)
			}
			if g.Wait() != nil {
				return 0
			}
			return t.done(n)
		}
	}
}

// emptyChannel is a pool written by hand: as many goroutines as the
// limit allows, and a buffered channel.
func emptyChannel(limit int) starter {
	return func(st *measure.Stage) measure.Loop {
		t := newTally(st)
		run := t.plain()
		return func(n int) int {
			tasks := make(chan func(), 1024)
			var all sync.WaitGroup
			for range limit {
				all.Go(func() {
					for f := range tasks {
						f()
					}
				})
			}
			for range n {
				tasks <- run
			}
			close(tasks)
			all.Wait()
			return t.done(n)
		}
	}
}

func emptyPond(limit int) starter {
	return func(st *measure.Stage) measure.Loop {
		t := newTally(st)
		run := t.plain()
		return func(n int) int {
			p := pond.NewPool(limit)
			for range n {
				if p.Go(run) != nil {
					return 0
				}
			}
			p.StopAndWait()
			return t.done(n)
		}
	}
}

func emptyConc(limit int) starter {
	return func(st *measure.Stage) measure.Loop {
		t := newTally(st)
		run := t.plain()
		return func(n int) int {
			p := pool.New().WithMaxGoroutines(limit)
			for range n {
				p.Go(run)
			}
			p.Wait()
			return t.done(n)
		}
	}
}

func emptyErrgroup(limit int) starter {
	return func(st *measure.Stage) measure.Loop {
		ctx := cancellable(st)
		t := newTally(st)
		run := t.failing()
		return func(n int) int {
			g, _ := errgroup.WithContext(ctx)
			g.SetLimit(limit)
			for range n {
				g.Go(run)
			}
			if g.Wait() != nil {
				return 0
			}
			return t.done(n)
		}
	}
}

func emptyAnts(limit int) starter {
	return func(st *measure.Stage) measure.Loop {
		p, err := ants.NewPool(limit)
		if err != nil {
			panic(err)
		}
		st.Cleanup(p.Release)
		t := newTally(st)
		run := t.plain()
		var all sync.WaitGroup
		task := func() { defer all.Done(); run() }
		return func(n int) int {
			all.Add(n)
			for range n {
				if p.Submit(task) != nil {
					return 0
				}
			}
			all.Wait()
			return t.done(n)
		}
	}
}
