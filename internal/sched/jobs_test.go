package sched //nolint:testpackage // the start times show only in estimates

import (
	"slices"
	"testing"
)

// However many functions have begun, the latest start times are known, and no number grows
// without end.
func TestB6_LatestStartTimes(t *testing.T) {
	var j jobs
	for at := range int64(3*keptStarts + 5) {
		j.begin(at)
		if j.next < 0 || j.next >= keptStarts {
			t.Fatalf("the next start time has the index %d, want one of the ring of %d", j.next, keptStarts)
		}
		for _, n := range []int64{0, 1, 7, keptStarts} {
			if n > at+1 {
				break
			}
			var want []int64
			for i := at - n + 1; i <= at; i++ {
				want = append(want, i)
			}
			if got := j.last(int(n)); !slices.Equal(got, want) {
				t.Fatalf("the last %d start times are %v, want %v", n, got, want)
			}
		}
	}
}
