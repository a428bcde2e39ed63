package halt_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/halt"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]halt.Rule{
		"":               {},
		"never":          {},
		"now,fail=1":     {When: halt.Now, What: halt.Fail, Count: 1},
		"soon,fail=3":    {When: halt.Soon, What: halt.Fail, Count: 3},
		"soon,fail=10%":  {When: halt.Soon, What: halt.Fail, Percent: 10},
		"now,success=1":  {When: halt.Now, What: halt.Success, Count: 1},
		"now,done=7":     {When: halt.Now, What: halt.Done, Count: 7},
		"soon,fail=100%": {When: halt.Soon, What: halt.Fail, Percent: 100},
	} {
		if got, err := halt.Parse(text); err != nil || got != want {
			t.Errorf("%q = %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"2", "now", "now,fail", "later,fail=1", "now,lost=1", "now,fail=0", "now,fail=-1", "now,fail=x",
		"now,fail=0%", "now,fail=101%", "now,done=10%", "now,fail=", "now,fail=%",
	} {
		if r, err := halt.Parse(text); err == nil || !strings.Contains(err.Error(), "now,fail=1") {
			t.Errorf("%q = %+v, %v; want an error with an example", text, r, err)
		}
	}
}

func TestMet(t *testing.T) {
	for _, row := range []struct {
		rule              string
		succeeded, failed int
		want              bool
	}{
		{"never", 0, 1000, false},
		{"now,fail=1", 100, 0, false},
		{"now,fail=1", 0, 1, true},
		{"soon,fail=3", 5, 2, false},
		{"soon,fail=3", 5, 3, true},
		{"now,success=2", 1, 9, false},
		{"now,success=2", 2, 0, true},
		{"now,done=3", 1, 1, false},
		{"now,done=3", 1, 2, true},
		{"soon,fail=10%", 0, 1, false},
		{"soon,fail=10%", 8, 1, false},
		{"soon,fail=10%", 9, 1, true},
		{"soon,fail=10%", 18, 2, true},
		{"soon,fail=10%", 19, 2, false},
		{"soon,fail=100%", 0, 1, true},
		{"soon,success=50%", 1, 1, true},
	} {
		rule, err := halt.Parse(row.rule)
		if err != nil {
			t.Fatal(err)
		}
		if got := rule.Met(row.succeeded, row.failed); got != row.want {
			t.Errorf("%s after %d good, %d bad: %v", row.rule, row.succeeded, row.failed, got)
		}
	}
}

// Every rule that parses is met eventually if all jobs count for it, and never before a
// job has ended.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{"never", "now,fail=1", "soon,fail=10%", "soon,success=3", "now,done=2", ",=%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rule, err := halt.Parse(text)
		if err != nil {
			return
		}
		if rule.Met(0, 0) {
			t.Errorf("%q is met by nothing", text)
		}
		good, bad := 0, max(rule.Count, 100)
		if rule.What == halt.Success {
			good, bad = bad, good
		}
		if rule.Met(good, bad) != (rule.When != halt.Never) {
			t.Errorf("%q after %d good, %d bad: %v", text, good, bad, rule.Met(good, bad))
		}
	})
}
