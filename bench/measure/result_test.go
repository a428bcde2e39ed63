package measure_test

import (
	"math"
	"testing"

	"github.com/stintgo/stint/bench/measure"
)

func TestMedian(t *testing.T) {
	tests := []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
		{[]float64{1, 1, 1, 1, 1000}, 1},
	}
	for _, tt := range tests {
		if got := measure.Median(tt.values); got != tt.want {
			t.Errorf("Median(%v) = %v, want %v", tt.values, got, tt.want)
		}
	}
	if got := measure.Median(nil); !math.IsNaN(got) {
		t.Errorf("Median of nothing = %v, want not a number", got)
	}
	values := []float64{3, 1, 2}
	measure.Median(values)
	if values[0] != 3 {
		t.Error("Median has sorted its argument")
	}
}

// A machine that turns slow for both subjects must not move the ratio; the
// quotient of the medians, 30/20, would have been moved here.
func TestRatioComparesTheSameRound(t *testing.T) {
	r := measure.Result{
		Case: measure.Case{
			Ours:     "ours",
			Subjects: []measure.Subject{{Name: "ours"}, {Name: "peer"}},
		},
		Samples: [][]measure.Values{
			{{"time": 10}, {"time": 30}, {"time": 50}},
			{{"time": 20}, {"time": 60}, {"time": 10}},
		},
	}
	if got := r.Ratio("ours", "peer", "time"); got != 0.5 {
		t.Errorf("ratio = %v, want 0.5", got)
	}
	if got := r.Median("ours", "time"); got != 30 {
		t.Errorf("median = %v, want 30", got)
	}
}

func TestCompare(t *testing.T) {
	r := measure.Result{
		Case: measure.Case{
			Ours:     "ours",
			Subjects: []measure.Subject{{Name: "peer"}, {Name: "ours"}},
		},
		Samples: [][]measure.Values{{{"time": 100, "allocs": 3}}, {{"time": 70, "allocs": 1}}},
	}
	tests := []struct {
		goal  string
		value float64
		met   bool
	}{
		{"time ≤ 0.7× peer", 0.7, true},
		{"time ≤ 0.69× peer", 0.7, false},
		{"time ≤ 70 ns", 70, true},
		{"allocs ≤ 0", 1, false},
	}
	for _, tt := range tests {
		g, err := measure.ParseGoal(tt.goal)
		if err != nil {
			t.Fatal(err)
		}
		if value, met := r.Compare(g); value != tt.value || met != tt.met {
			t.Errorf("Compare(%q) = %v, %v, want %v, %v", tt.goal, value, met, tt.value, tt.met)
		}
	}
}
