package stint_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
)

// crowd is what the stress test's goroutines share.
type crowd struct {
	t       *testing.T
	s       stint.Scheduler
	limit   int32
	running atomic.Int32
	torn    sync.WaitGroup // teardowns; one that is called twice panics
}

// body is code between two waits: it runs on a slot.
func (c *crowd) body() {
	if n := c.running.Add(1); n > c.limit {
		c.t.Errorf("%d run at once, limit %d", n, c.limit)
	}
	c.running.Add(-1)
}

func (c *crowd) track(f *stint.Future[int]) *stint.Future[int] {
	c.torn.Add(1)
	f.Teardown(c.torn.Done)
	return f
}

// work is a function that may do anything that a user's may.
func (c *crowd) work(ctx context.Context, rng *rand.Rand, depth int) (int, error) {
	c.body()
	defer c.body()
	switch op := rng.IntN(12); {
	case depth == 0 || op < 4:
		return op, nil
	case op == 4:
		return 0, errBoom
	case op == 5:
		return panicsInside(ctx)
	case op == 6:
		return exits(ctx)
	default:
		return c.nest(ctx, rng, depth-1)
	}
}

// nest waits for work of the same scheduler, in one of the ways that there are.
func (c *crowd) nest(ctx context.Context, rng *rand.Rand, depth int) (int, error) {
	seed := rng.Uint64()
	fn := func(ctx context.Context) (int, error) {
		return c.work(ctx, rand.New(rand.NewPCG(seed, uint64(depth))), depth)
	}
	switch rng.IntN(5) {
	case 0:
		return stint.Run(ctx, c.s, func(ctx context.Context) (int, error) {
			return c.work(ctx, rand.New(rand.NewPCG(seed, 0)), 0)
		})
	case 1:
		f := c.track(stint.Go(ctx, c.s, fn))
		if rng.IntN(3) == 0 {
			f.Cancel(errBoom)
		}
		return f.Wait(ctx)
	case 2:
		g := stint.NewGroup(ctx, c.s)
		for range 3 {
			g.Go(func(ctx context.Context) error {
				_, err := fn(ctx)
				return err
			})
		}
		return 0, g.Wait()
	case 3:
		f := c.track(stint.Go(ctx, c.s, fn))
		next := c.track(stint.Then(ctx, c.s, f, func(ctx context.Context, _ int) (int, error) { return fn(ctx) }))
		if rng.IntN(3) == 0 {
			next.Cancel(nil)
		}
		return next.Wait(ctx)
	default:
		over := stint.Map[int, int]
		if rng.IntN(2) == 0 {
			over = stint.MapUnordered[int, int]
		}
		stop := rng.IntN(8)
		for n, err := range over(ctx, c.s, upTo(6), func(ctx context.Context, n int) (int, error) {
			_, err := fn(ctx)
			return n, err
		}) {
			if n == stop {
				return n, err
			}
		}
		return 0, nil
	}
}

// Everything at once on real threads: the limit holds, every future settles,
// every teardown is called once and no slot is lost.
func TestD6_StressFutures(t *testing.T) {
	const goroutines, each = 6, 250
	seed := seeded.Seed(t)
	for _, limit := range []int{1, 3} {
		c := &crowd{t: t, s: stint.New(limit, stint.Config{}), limit: int32(limit)}
		var wg sync.WaitGroup
		for i := range uint64(goroutines) {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(seed, i))
				for range each {
					c.burst(rng)
				}
			})
		}
		wg.Wait()
		c.torn.Wait() // also of those whose waiter gave up
		if err := c.s.Drain(t.Context()); err != nil {
			t.Errorf("limit %d: Drain: %v", limit, err)
		}
		if st := c.s.Stats(); st.Running != 0 || st.Queued != 0 {
			t.Errorf("limit %d: at the end %d running, %d queued", limit, st.Running, st.Queued)
		}
	}
}

// burst makes a few futures under one context, cancels some, and waits for all.
func (c *crowd) burst(rng *rand.Rand) {
	ctx, cancel := context.WithCancelCause(c.t.Context())
	defer cancel(nil)
	var futures []*stint.Future[int]
	for range 1 + rng.IntN(6) {
		seed, at := rng.Uint64(), stint.Priority(rng.IntN(stint.Tiers)-3)
		f := c.track(stint.Go(ctx, c.s.At(at), func(ctx context.Context) (int, error) {
			return c.work(ctx, rand.New(rand.NewPCG(seed, 1)), 2)
		}))
		futures = append(futures, f)
	}
	switch rng.IntN(4) {
	case 0:
		cancel(errBoom)
	case 1:
		futures[0].Cancel(errBoom)
	}
	for _, f := range futures {
		if _, err := f.Wait(c.t.Context()); errors.Is(err, stint.ErrClosed) {
			c.t.Errorf("Wait: %v", err)
		}
	}
}
