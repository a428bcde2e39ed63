package browsertest_test

import (
	_ "embed"
	"fmt"
	"testing"

	"github.com/stintgo/stint/transfer/browser"
)

//go:embed testdata/orders.js
var orders string

// Orders at random, at any moment, to transfers whose requests fail at random, leak no slot: no more
// transfers run than there are slots, none waits beside a free one, and all end.
func TestModel_SchedulerInBrowser(t *testing.T) {
	const seeds, rounds = 5, 2000
	b := serve(t, fast, browser.Config{}).open(1280)
	for seed := 1; seed <= seeds; seed++ {
		type result struct {
			Broken                []string
			Succeeded, Last, Made int
		}
		got := eval[result](b, fmt.Sprintf(`%s(%d, %d)`, orders, seed*7919, rounds))
		t.Logf("seed %d: %d transfers succeeded, %d uploads were made", seed, got.Succeeded, got.Last)
		if len(got.Broken) > 0 || got.Succeeded < rounds/200 {
			t.Errorf("seed %d: %d succeeded, and these rules were broken: %q", seed, got.Succeeded, got.Broken)
		}
	}
}
