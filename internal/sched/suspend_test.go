package sched //nolint:testpackage // calls and groups are made without the API over them

import (
	"context"
	"testing"
	"testing/synctest"
)

// A drain does not wait for a goroutine that waits within a function that has ended,
// whether the goroutine began to wait before or after that end.
func TestB7_DrainAfterFunctionsWhoseGoroutinesWait(t *testing.T) {
	ask := Ask{Weight: 1, Tier: 3}
	for name, submit := range map[string]func(t *testing.T, e *Engine, fn func(ctx context.Context)){
		"call": func(t *testing.T, e *Engine, fn func(ctx context.Context)) {
			t.Helper()
			job := &function{fn: fn}
			job.Init(t.Context(), e)
			job.Go(job, ask)
		},
		"group": func(t *testing.T, e *Engine, fn func(ctx context.Context)) {
			t.Helper()
			g := new(Group)
			g.Init(t.Context(), e, ask)
			g.Go(func(ctx context.Context) error {
				fn(ctx)
				return nil
			})
		},
	} {
		for _, after := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := New(Config{Limit: 1})
					awaited, wait, end := new(Call), make(chan struct{}), make(chan struct{})
					awaited.InitByHand(e)
					submit(t, e, func(ctx context.Context) {
						go func() {
							<-wait
							awaited.Wait(context.WithoutCancel(ctx))
						}()
						<-end
					})
					steps := []chan struct{}{wait, end}
					if after {
						steps = []chan struct{}{end, wait}
					}
					for _, step := range steps {
						synctest.Wait()
						close(step)
					}
					synctest.Wait()
					if err := e.Drain(t.Context()); err != nil {
						t.Errorf("Drain: %v", err)
					}
					awaited.Claim()
					awaited.Settle(nil)
					synctest.Wait()
					if st := e.Stats(func() {}); st.Running != 0 {
						t.Errorf("%d slots are in use, want 0", st.Running)
					}
				})
			})
		}
	}
}
