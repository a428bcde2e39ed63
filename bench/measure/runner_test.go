package measure_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/bench/measure"
)

// honest returns a subject that does its work and appends its name to log when it
// begins a sample.
func honest(name string, log *[]string) measure.Subject {
	return measure.Subject{Name: name, Loop: func(st *measure.Stage) measure.Loop {
		if !st.Counting {
			*log = append(*log, name)
		}
		return func(n int) int { return n }
	}}
}

func TestSubjectsTakeTurnsInRotation(t *testing.T) {
	var log []string
	c := measure.Case{Name: "turns", N: 10, Subjects: []measure.Subject{
		honest("a", &log), honest("b", &log), honest("c", &log),
	}}
	result, err := measure.Full(4).Run(c)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(log, ""); got != "abcbcacababc" {
		t.Errorf("order of samples = %s, want abc bca cab abc", got)
	}
	for i, samples := range result.Samples {
		if len(samples) != 4 {
			t.Errorf("subject %d has %d samples, want 4", i, len(samples))
		}
	}
}

// In a bubble only sleeps advance the clock, so the figures are exact.
func TestCalibrationFillsTheTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		c := measure.Case{Name: "pace", Subjects: []measure.Subject{{
			Name: "a microsecond each",
			Loop: func(st *measure.Stage) measure.Loop {
				sizes = append(sizes, st.N)
				return func(n int) int {
					time.Sleep(time.Duration(n) * time.Microsecond)
					return n
				}
			},
		}}}
		runner := measure.Runner{Rounds: 1, Target: 40 * time.Millisecond}
		result, err := runner.Run(c)
		if err != nil {
			t.Fatal(err)
		}
		if n := sizes[len(sizes)-1]; n != 40_000 {
			t.Errorf("a sample has %d operations of a microsecond for a target of 40 ms", n)
		}
		if got := result.Median("a microsecond each", measure.Time); got != 1000 {
			t.Errorf("time = %v ns, want 1000", got)
		}
	})
}

func TestLazySubjectIsFoundOut(t *testing.T) {
	lazy := measure.Subject{Name: "lazy", Loop: func(*measure.Stage) measure.Loop {
		return func(n int) int { return n - n/10 }
	}}
	_, err := measure.Once().Run(measure.Case{Name: "work", Subjects: []measure.Subject{lazy}})
	if err == nil || !strings.Contains(err.Error(), "lazy: did 23 of 25 operations") {
		t.Errorf("err = %v", err)
	}
}

// A subject that leaves tasks out is caught before anything is timed.
func TestCountingComesFirst(t *testing.T) {
	var stages []bool
	subject := measure.Subject{Name: "a", Loop: func(st *measure.Stage) measure.Loop {
		stages = append(stages, st.Counting)
		return func(n int) int { return n }
	}}
	if _, err := measure.Once().Run(measure.Case{Name: "work", Subjects: []measure.Subject{subject}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(stages, []bool{true, false}) {
		t.Errorf("counting was %v, want the first sample only", stages)
	}
}

func TestAllocationsAreCounted(t *testing.T) {
	var kept [][]byte
	c := measure.Case{Name: "allocations", N: 1000, Subjects: []measure.Subject{{
		Name: "256 bytes each",
		Loop: func(*measure.Stage) measure.Loop {
			kept = make([][]byte, 0, 2000)
			return func(n int) int {
				for range n {
					kept = append(kept, make([]byte, 256))
				}
				return n
			}
		},
	}}}
	result, err := measure.Full(3).Run(c)
	if err != nil {
		t.Fatal(err)
	}
	// The race detector allocates on its own account, so only from below.
	if got := result.Median("256 bytes each", measure.Allocs); got < 1 || got > 1.5 {
		t.Errorf("allocs = %v, want about 1", got)
	}
	if got := result.Median("256 bytes each", measure.Bytes); got < 256 || got > 400 {
		t.Errorf("bytes = %v, want about 256", got)
	}
}

func TestProbeFailsTheCase(t *testing.T) {
	broken := errors.New("out of order")
	cleaned := 0
	c := measure.Case{
		Name:     "probing",
		Readings: []measure.Reading{{Name: "rate", Unit: "/s"}},
		Subjects: []measure.Subject{{Name: "peer", Probe: func(st *measure.Stage) (measure.Values, error) {
			st.Cleanup(func() { cleaned++ })
			return nil, broken
		}}},
	}
	if _, err := measure.Once().Run(c); !errors.Is(err, broken) {
		t.Errorf("err = %v, want %v", err, broken)
	}
	if cleaned != 1 {
		t.Errorf("cleaned up %d times, want 1", cleaned)
	}
}

func TestCleanupsRunLastFirst(t *testing.T) {
	var order []int
	c := measure.Case{
		Name:     "cleaning",
		Readings: []measure.Reading{{Name: "rate", Unit: "/s"}},
		Subjects: []measure.Subject{{Name: "a", Probe: func(st *measure.Stage) (measure.Values, error) {
			st.Cleanup(func() { order = append(order, 1) })
			st.Cleanup(func() { order = append(order, 2) })
			return measure.Values{"rate": 1}, nil
		}}},
	}
	if _, err := measure.Once().Run(c); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(order) != "[2 1]" {
		t.Errorf("order = %v, want [2 1]", order)
	}
}

func TestGoalsMustKnowTheirCase(t *testing.T) {
	subjects := []measure.Subject{{Name: "ours"}, {Name: "peer"}}
	tests := []struct {
		name string
		c    measure.Case
		want string
	}{
		{"fine", measure.Case{Ours: "ours", Goals: []string{"time ≤ 1× peer"}, Subjects: subjects}, ""},
		{"subject", measure.Case{Ours: "ours", Goals: []string{"time ≤ 1× pear"}, Subjects: subjects}, `no subject "pear"`},
		{"ours", measure.Case{Ours: "us", Goals: []string{"time ≤ 1× peer"}, Subjects: subjects}, `no subject "us"`},
		{"reading", measure.Case{Ours: "ours", Goals: []string{"tide ≤ 1× peer"}, Subjects: subjects}, `no reading "tide"`},
	}
	for _, tt := range tests {
		_, err := tt.c.ParsedGoals()
		if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%s: err = %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestSpreadSharesEvenly(t *testing.T) {
	for _, tt := range []struct{ n, workers int }{{10, 4}, {3, 64}, {0, 2}, {640, 64}, {7, 1}} {
		shares := make([]int, tt.workers)
		done := measure.Spread(tt.n, tt.workers, func(worker, share int) int {
			shares[worker] = share
			return share
		})
		if done != tt.n {
			t.Errorf("%d over %d: did %d", tt.n, tt.workers, done)
		}
		if most, least := slices.Max(shares), slices.Min(shares); most-least > 1 {
			t.Errorf("%d over %d: shares from %d to %d", tt.n, tt.workers, least, most)
		}
	}
}
