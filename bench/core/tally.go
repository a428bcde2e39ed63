package core

import (
	"context"
	"sync/atomic"

	"github.com/stintgo/stint/bench/measure"
)

// tally gives a case its task: one that does nothing, or one that counts
// itself where the stage checks that no task is left out.
type tally struct {
	counting bool
	ran      atomic.Int64
}

func newTally(st *measure.Stage) *tally { return &tally{counting: st.Counting} }

// plain, failing and value are the same task in the shapes that the subjects
// take. Each is made once, so that no subject pays for a closure
// per task.
func (t *tally) plain() func() {
	if t.counting {
		return func() { t.ran.Add(1) }
	}
	return func() {}
}

func (t *tally) failing() func() error {
	run := t.plain()
	return func() error { run(); return nil }
}

func (t *tally) withContext() func(context.Context) error {
	run := t.plain()
	return func(context.Context) error { run(); return nil }
}

// done is how many of n tasks have run. It starts again from 0.
func (t *tally) done(n int) int {
	if t.counting {
		return int(t.ran.Swap(0))
	}
	return n
}
