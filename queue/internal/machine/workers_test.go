package machine_test

import (
	"slices"
	"testing"

	"github.com/stintgo/stint/queue"
)

// Stats lists the workers in the order of their names.
func TestB6_WorkersAreSorted(t *testing.T) {
	m := open(t, newRows())
	var want []string
	for c := 'z'; c >= 'a'; c-- {
		want = append(want, string(c))
		if _, err := m.Heartbeat(t.Context(), start, queue.Worker{Name: string(c)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	stats, err := m.Stats(t.Context(), start)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range stats.Workers {
		got = append(got, w.Name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("the workers are %q, want %q", got, want)
	}
}
