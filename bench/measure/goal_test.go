package measure_test

import (
	"strings"
	"testing"

	"github.com/stintgo/stint/bench/measure"
)

func TestParseGoal(t *testing.T) {
	tests := []struct {
		text    string
		reading string
		atMost  bool
		bound   float64
		against string
		shown   string
	}{
		{"time ≤ 0.75× x/sync semaphore", "time", true, 0.75, "x/sync semaphore", "≤ 0.75×"},
		{"rate ≥ 10× p-limit", "rate", false, 10, "p-limit", "≥ 10×"},
		{"allocs ≤ 0", "allocs", true, 0, "", "≤ 0"},
		{"time ≤ 5 ms", "time", true, 5e6, "", "≤ 5 ms"},
		{"time ≤ 5ms", "time", true, 5e6, "", "≤ 5ms"},
		{"time ≤ 2.5 µs", "time", true, 2500, "", "≤ 2.5 µs"},
		{"time ≤ 3 s", "time", true, 3e9, "", "≤ 3 s"},
		{"  slowest half second ≥ 99 %", "slowest half second", false, 99, "", "≥ 99 %"},
		{"time ≤ 1.5× stint, 10000 queued", "time", true, 1.5, "stint, 10000 queued", "≤ 1.5×"},
	}
	for _, tt := range tests {
		g, err := measure.ParseGoal(tt.text)
		if err != nil {
			t.Errorf("ParseGoal(%q): %v", tt.text, err)
			continue
		}
		if g.Reading != tt.reading || g.AtMost != tt.atMost || g.Bound != tt.bound || g.Against != tt.against {
			t.Errorf("ParseGoal(%q) = %+v", tt.text, g)
		}
		if g.Condition() != tt.shown {
			t.Errorf("ParseGoal(%q).Condition() = %q, want %q", tt.text, g.Condition(), tt.shown)
		}
	}
}

func TestParseGoalRefuses(t *testing.T) {
	for _, text := range []string{
		"", "time", "≤ 3", "time ≤", "time ≤ much", "time ≤ 2×", "time ≤ 2× ", "time = 2", "time ≤ 1 ≥ 2",
		"time ≥ 1 ≤ 2", "time ≤ NaN", "time ≤ Inf", "time ≤ 5 hours", "time ≤ 5 ms× peer",
	} {
		if g, err := measure.ParseGoal(text); err == nil {
			t.Errorf("ParseGoal(%q) = %+v, want an error", text, g)
		} else if !strings.Contains(err.Error(), "want ") {
			t.Errorf("ParseGoal(%q): %q does not say what is wanted", text, err)
		}
	}
}

func TestGoalMetBy(t *testing.T) {
	tests := []struct {
		goal  string
		value float64
		met   bool
	}{
		{"time ≤ 0.75× peer", 0.75, true},
		{"time ≤ 0.75× peer", 0.7501, false},
		{"rate ≥ 10× peer", 10, true},
		{"rate ≥ 10× peer", 9.99, false},
		{"time ≤ 5 ms", 5e6, true},
		{"time ≤ 5 ms", 5e6 + 1, false},
		{"allocs ≤ 0", 0.04, true}, // a goroutine of the runtime's, not of the subject
		{"allocs ≤ 0", 0.06, false},
		{"allocs ≤ 1", 1.04, true},
		{"bytes ≤ 64", 64.4, true},
		{"bytes ≤ 64", 64.6, false},
		{"bytes ≤ 1× peer", 1.04, false}, // a ratio is what it is
	}
	for _, tt := range tests {
		g, err := measure.ParseGoal(tt.goal)
		if err != nil {
			t.Fatal(err)
		}
		if met := g.MetBy(tt.value); met != tt.met {
			t.Errorf("%q met by %v: %v, want %v", tt.goal, tt.value, met, tt.met)
		}
	}
}

// What a goal says of itself is a goal again, and the same one.
func FuzzParseGoal(f *testing.F) {
	for _, text := range []string{
		"time ≤ 0.75× x/sync semaphore", "rate ≥ 10× p-limit", "time ≤ 5 ms", "allocs ≤ 0", "a≤1µs", "≤", "x ≥ -1e9%",
		"time ≤ 0x1p-2", "t ≤ 1_0", "×≤×",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := measure.ParseGoal(text)
		if err != nil {
			return
		}
		again, err := measure.ParseGoal(g.String())
		if err != nil {
			t.Fatalf("%q became %q: %v", text, g, err)
		}
		if again != g {
			t.Errorf("%q became %+v, then %+v", text, g, again)
		}
	})
}
