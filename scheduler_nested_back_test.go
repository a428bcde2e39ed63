package stint_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// A call on the outer scheduler within one on the inner needs more slots than the function holds.
// While it waits, it also lends the slot of the inner scheduler: the other function needs that
// to end, and to release its slot of the outer one.
func TestA4_HeavyCallBackToTheOuterScheduler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := stint.New(2, stint.Config{}), stint.New(1, stint.Config{})
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				err := within(t.Context(), []stint.Scheduler{a, b}, func(ctx context.Context) error {
					time.Sleep(time.Second)
					_, err := stint.Run(ctx, a.Weight(2), one)
					return err
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
		wantNothingLeft(t, []stint.Scheduler{a, b})
	})
}
