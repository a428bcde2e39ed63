package stint_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
)

// Waiting and Why of the last entry give the same reasons, whichever is called first: both bring
// the policy up to date after starts that it has not recorded yet.
func TestWhy_WaitingAndWhyAgree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := stint.New(1, stint.Config{})
		permit := mustTry(t, s)
		gate := make(chan struct{})
		var last *stint.Future[int]
		for range 10 {
			last = stint.Go(t.Context(), s, func(context.Context) (int, error) { <-gate; return 1, nil })
		}
		releaseSlot(permit)
		for range 3 {
			gate <- struct{}{}
			synctest.Wait()
		}
		all := s.Waiting()
		if len(all) != 6 {
			t.Fatalf("%d wait, want 6", len(all))
		}
		why, waits := last.Why()
		if !waits {
			t.Fatal("the last entry does not wait")
		}
		if got := all[5].Reasons; !sameReasons(got, why.Reasons) {
			t.Errorf("Waiting says\n%+v, and Why, called after it,\n%+v", got, why.Reasons)
		}
		close(gate)
		wantAllFree(t, s)
	})
}
