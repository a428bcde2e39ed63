// Package measuretest checks the cases of a suite.
package measuretest

import (
	"math"
	"testing"

	"github.com/stintgo/stint/bench/measure"
)

// Run runs every case once, in a tiny pass. All subjects must do all of their
// work and agree on how much that was, answer every reading that the case
// declares, and each goal must name a subject and a reading of its case.
func Run(t *testing.T, cases []measure.Case) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.Name] {
			t.Errorf("two cases are called %q", c.Name)
		}
		seen[c.Name] = true
		t.Run(c.Name, func(t *testing.T) { runCase(t, c) })
	}
}

func runCase(t *testing.T, c measure.Case) {
	t.Helper()
	goals, err := c.ParsedGoals()
	if err != nil {
		t.Fatal(err)
	}
	if len(goals) == 0 {
		t.Error("the case has no goal, so nothing would ever be missed")
	}
	result, err := measure.Once().Run(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range c.Subjects {
		if (s.Loop == nil) == (s.Probe == nil) {
			t.Errorf("%s: want one of Loop and Probe", s.Name)
		}
		for _, reading := range c.AllReadings() {
			value, ok := result.Samples[i][0][reading.Name]
			if !ok || math.IsNaN(value) || value < 0 {
				t.Errorf("%s: reading %q is %v", s.Name, reading.Name, value)
			}
		}
	}
}
