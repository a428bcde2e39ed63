package stint_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// What a running function starts with its context runs through a drain, in whatever form, and the
// drain waits for it. Work from elsewhere is refused, also that of a function that has ended.
func TestB7_DrainLetsRunningFunctionsGoOn(t *testing.T) {
	for name, nested := range map[string]func(context.Context, stint.Scheduler) error{
		"Go": func(ctx context.Context, s stint.Scheduler) error {
			_, err := stint.Go(ctx, s, value(1)).Wait(ctx)
			return err
		},
		"Go with a key": func(ctx context.Context, s stint.Scheduler) error {
			_, err := stint.Go(ctx, s.Key("a"), value(1)).Wait(ctx)
			return err
		},
		"Then": func(ctx context.Context, s stint.Scheduler) error {
			next := stint.Then(ctx, s, stint.Go(ctx, s, value(1)), func(context.Context, int) (int, error) { return 2, nil })
			_, err := next.Wait(ctx)
			return err
		},
		"a group": func(ctx context.Context, s stint.Scheduler) error {
			g := stint.NewGroup(ctx, s)
			for range 5 {
				g.Go(func(ctx context.Context) error { time.Sleep(time.Second); return ctx.Err() })
			}
			return g.Wait()
		},
		"Map": func(ctx context.Context, s stint.Scheduler) (err error) {
			for _, err = range stint.Map(ctx, s, slices.Values([]int{1, 2, 3}), func(context.Context, int) (int, error) {
				return 1, nil
			}) {
				if err != nil {
					return err
				}
			}
			return err
		},
		"Go within a call on another scheduler": func(ctx context.Context, s stint.Scheduler) error {
			_, err := stint.Run(ctx, stint.New(1, stint.Config{}), func(ctx context.Context) (int, error) {
				return stint.Go(ctx, s, value(1)).Wait(ctx)
			})
			return err
		},
		"Go, not waited for": func(ctx context.Context, s stint.Scheduler) error {
			stint.Go(context.WithoutCancel(ctx), s, func(context.Context) (int, error) { time.Sleep(time.Hour); return 0, nil })
			return nil
		},
	} {
		for _, cfg := range []stint.Config{{}, {Queue: 1}, {Holders: true}} {
			synctest.Test(t, func(t *testing.T) {
				s := stint.New(1, cfg)
				var kept context.Context
				f := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
					kept = context.WithoutCancel(ctx) //nolint:fatcontext // one for each test
					time.Sleep(time.Second)
					return 0, nested(ctx, s)
				})
				synctest.Wait()
				drained := make(chan error)
				go func() { drained <- s.Drain(t.Context()) }()
				synctest.Wait()
				if _, err := stint.Go(t.Context(), s, value(1)).Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
					t.Errorf("%s: work from elsewhere: %v, want ErrClosed", name, err)
				}
				if _, err := f.Wait(t.Context()); err != nil {
					t.Errorf("%s: %v within a function that runs through a drain", name, err)
				}
				if err := <-drained; err != nil {
					t.Errorf("%s: Drain: %v", name, err)
				}
				if n := s.Stats().Running; n != 0 {
					t.Errorf("%s: %d slots are in use after Drain", name, n)
				}
				if _, err := stint.Go(kept, s, value(1)).Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
					t.Errorf("%s: work of a function that has ended: %v, want ErrClosed", name, err)
				}
			})
		}
	}
}

// A forced close refuses what running functions start as well.
func TestB7_CloseRefusesNestedWork(t *testing.T) {
	for name, nested := range map[string]func(ctx context.Context, s stint.Scheduler) error{
		"Go": func(ctx context.Context, s stint.Scheduler) error {
			_, err := stint.Go(ctx, s, value(1)).Wait(ctx)
			return err
		},
		"Run": func(ctx context.Context, s stint.Scheduler) error {
			_, err := stint.Run(ctx, s, value(1))
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := stint.New(2, stint.Config{})
			f := stint.Go(t.Context(), s, func(ctx context.Context) (int, error) {
				time.Sleep(time.Second)
				return 0, nested(context.WithoutCancel(ctx), s)
			})
			synctest.Wait()
			s.Close()
			if _, err := f.Wait(t.Context()); !errors.Is(err, stint.ErrClosed) {
				t.Errorf("nested %s after Close: %v, want ErrClosed", name, err)
			}
		})
	}
}

// Jobs that only wait for their worker take no slot from TryAcquire, and Why neither shows
// a function that could run as waiting nor the slots as taken.
func TestB4_TryAcquireBesideWorkersThatAreOnTheirWay(t *testing.T) {
	for range 100 {
		s := stint.New(100, stint.Config{})
		end := make(chan struct{})
		wait := func(context.Context) (int, error) { <-end; return 0, nil }
		fs := make([]*stint.Future[int], 20)
		for i := range fs {
			fs[i] = stint.Go(t.Context(), s, wait)
		}
		if why := s.Why(); len(why) > 0 {
			t.Fatalf("80 of 100 slots are free, and Why is %v", why)
		}
		if w, waits := fs[19].Why(); waits {
			t.Fatalf("80 of 100 slots are free, and a function waits: %+v", w)
		}
		if n := len(s.Waiting()); n > 0 {
			t.Fatalf("80 of 100 slots are free, and %d functions wait", n)
		}
		stint.Go(t.Context(), s, wait)
		p, ok := s.TryAcquire(t.Context())
		if !ok {
			t.Fatal("79 of 100 slots are free, and TryAcquire has none")
		}
		p.Release()
		close(end)
		if err := s.WaitIdle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
