package sched //nolint:testpackage // a caller cannot step between the group's check and its submission

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// endsAfterCheck is a context that ends right after the first call of Err: for the engine
// it is over before Err returns.
type endsAfterCheck struct {
	context.Context //nolint:containedctx // it is a context itself

	end func()
}

func (c *endsAfterCheck) Err() error {
	err := c.Context.Err()
	if end := c.end; end != nil {
		c.end = nil
		end()
		synctest.Wait()
	}
	return err
}

// Go checks the context and then queues the function. If the context ends in between,
// expel finds nothing to refuse yet: Go refuses the function itself.
func TestA6_GroupGoWhileItsContextEnds(t *testing.T) {
	for name, ask := range asks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := New(Config{Limit: 2})
				full := Ask{Weight: 2, Tier: 3}
				p, err := e.Take(t.Context(), full)
				if err != nil {
					t.Fatal(err)
				}
				failure := errors.New("failed")
				var g Group
				g.Init(t.Context(), e, ask)
				g.ctx = &endsAfterCheck{g.ctx, func() { g.Fail(failure) }}
				g.Go(func(context.Context) error {
					t.Error("the function was called")
					return nil
				})
				synctest.Wait()
				if n := e.Stats(func() {}).Queued; n != 0 {
					t.Errorf("%d functions of an ended group are queued", n)
				}
				p.Release() // a function that is queued runs now, so that Wait returns
				if err := g.Wait(); !errors.Is(err, failure) {
					t.Errorf("Wait: %v, want %v", err, failure)
				}
			})
		})
	}
}
