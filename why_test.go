package stint_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stintgo/stint"
)

func TestB6_ReasonsAreSentences(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	ahead := [stint.Tiers]int{3: 5, 6: 1}
	for _, c := range []struct {
		reason stint.Reason
		want   string
	}{
		{stint.Reason{Code: stint.CodeMax, Limit: 4, Running: 5}, "as many slots are in use as the limit allows: 5 of 4"},
		{
			stint.Reason{Code: stint.CodeMax, Limit: 5, Running: 1, Weight: 5},
			"it needs 5 slots at once, and 1 of 5 are in use",
		},
		{
			stint.Reason{Code: stint.CodeCap, Limit: 2, Running: 3, Guard: 9},
			"its tier starts only while fewer than 2 slots are in use, and 3 are",
		},
		{
			stint.Reason{Code: stint.CodeKey, Key: "a\x1b", Limit: 1, Running: 1},
			`key "a\x1b" is at its limit: 1 of 1 entries run`,
		},
		{
			stint.Reason{Code: stint.CodeRate, Tokens: 5, FreeAt: noon},
			"the bucket is short of 5 tokens, which it has at 2026-01-02T12:00:00.000Z",
		},
		{stint.Reason{Code: stint.CodeRate, Tokens: 5}, "the bucket is short of 5 tokens"},
		{stint.Reason{Code: stint.CodeRate, Key: "a", Tokens: 5}, `the bucket of key "a" is short of 5 tokens`},
		{
			stint.Reason{Code: stint.CodeMax, Limit: 2, Running: 2, Held: []stint.Held{
				{Priority: stint.High, Key: "a", Weight: 1, Since: noon}, {Weight: 1, Since: noon},
			}},
			`as many slots are in use as the limit allows: 2 of 2, longest by tier high, key "a", ` +
				`since 2026-01-02T12:00:00.000Z`,
		},
		{stint.Reason{Code: stint.CodeBehind, Ahead: ahead}, "other entries go first: 1 of tier highest, 5 of tier normal"},
		{stint.Reason{Code: stint.CodeBehind, Guard: 3}, "an entry that needs several slots goes first"},
		{
			stint.Reason{Code: stint.CodeShared, Limit: 2, Running: 2, By: "a, b"},
			`as many shared slots are in use as there are: 2 of 2 ("a, b")`,
		},
		{
			stint.Reason{Code: stint.CodeShared, Tokens: 3, Ahead: ahead, By: "a", FreeAt: noon},
			`the shared bucket is short of 3 tokens, which it has at 2026-01-02T12:00:00.000Z ("a")`,
		},
		{
			stint.Reason{Code: stint.CodeShared, Ahead: ahead, By: "a"},
			`other entries go first: 1 of tier highest, 5 of tier normal ("a")`,
		},
		{
			stint.Reason{Code: stint.CodeShared, By: "no region"},
			`no shared slots or tokens are available now ("no region")`,
		},
		{
			stint.Reason{Code: stint.CodePaused, By: "ann: lunch", Since: noon},
			`the scheduler is paused ("ann: lunch"), since 2026-01-02T12:00:00.000Z`,
		},
		{stint.Reason{Code: stint.CodePaused}, "the scheduler is paused"},
		{stint.Reason{Code: stint.CodeClosed}, "the scheduler is closed"},
		{stint.Reason{Code: stint.CodeQueueFull, Limit: 5, Running: 5}, "the queue is full: 5 of 5 entries wait"},
		{stint.Reason{Code: "scheduled"}, "scheduled"},
	} {
		if got := fmt.Sprint(c.reason); got != c.want {
			t.Errorf("%s reads\n%q, want\n%q", c.reason.Code, got, c.want)
		}
	}
}
