package backlog_test

import (
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

func TestA5_QueuedInByKeyAndClass(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, PerKey: 1})
	var first, second backlog.Entry[int]
	b.Push(&first, backlog.Arrival{Tier: 3, Key: "k", Class: 1, Weight: 1})
	b.Push(&second, backlog.Arrival{Tier: 5, Key: "k", Class: 2, Weight: 1})
	for _, c := range []struct {
		key     string
		classes []int
		want    bool
	}{
		{"k", []int{1}, true},
		{"k", []int{2}, true},
		{"k", []int{0, 3}, false},
		{"k", []int{0, 2}, true},
		{"other", []int{1, 2}, false},
		{"k", nil, false},
	} {
		if got := b.Keys().QueuedIn(c.key, c.classes); got != c.want {
			t.Errorf("entries of key %s in classes %v wait: %t, want %t", c.key, c.classes, got, c.want)
		}
	}
	if n := b.Keys().Queued("k"); n != 2 {
		t.Errorf("%d entries of the key, want 2", n)
	}
	b.Remove(&second)
	if b.Keys().QueuedIn("k", []int{2}) {
		t.Error("an entry that was removed waits")
	}
	b.Keys().Block("k", rate)
	if !b.Keys().QueuedIn("k", []int{1}) {
		t.Error("what is held back does not wait")
	}
}

// EachQueued names a key once, however many tiers and classes it waits in, and none that
// only runs, is blocked or has been served.
func TestA5_EachQueuedNamesTheKeysThatWait(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	fillClass(b, 3, "waits", 0, 2)
	fillClass(b, 5, "waits", 1, 1)
	fill(b, 3, "held", 1)
	b.Keys().Block("held", rate)
	fill(b, 3, "", 1)
	fill(b, 6, "served", 1)
	b.Start(b.Peek(0))
	b.Keys().Finish("served")
	b.Keys().Admit("runs")
	b.Keys().Block("blocked", rate)
	var got []string
	b.Keys().EachQueued(func(key string) { got = append(got, key) })
	slices.Sort(got)
	if want := []string{"held", "waits"}; !slices.Equal(got, want) {
		t.Errorf("keys %q wait, want %q", got, want)
	}
}
