package backlog_test

import (
	"fmt"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

// Only a run is alone, not an entry without a key that stands for itself.
func TestA2_EntryWithoutAKeyIsNoRun(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	var e backlog.Entry[int]
	var run backlog.Run[int]
	b.Push(&e, backlog.Arrival{Tier: 3, Weight: 1})
	if tier := b.Alone(); tier != -1 {
		t.Errorf("tier %d is alone, want none: it has no run", tier)
	}
	b.Remove(&e)
	n := 1
	run.PushTo(b, backlog.Arrival{Tier: 3, Weight: 1}, 2, &n)
	if tier := b.Alone(); tier != 3 {
		t.Errorf("tier %d is alone, want the run of tier 3", tier)
	}
}

// What waits behind or beside a run has all its pieces ahead that start before it.
func TestWhy_Run(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	var run backlog.Run[int]
	var lower backlog.Entry[int]
	var keyed [4]backlog.Entry[int]
	n := 10
	run.PushTo(b, backlog.Arrival{Tier: 3, Weight: 1}, 1, &n)
	for i := range keyed {
		b.PushAt(&keyed[i], backlog.Arrival{Tier: 3, Key: "k", Weight: 1}, uint64(2+i))
	}
	b.PushAt(&lower, backlog.Arrival{Tier: 2, Weight: 1}, 100)
	for i := range keyed { // the key and the run take turns, and the run was first
		if got, want := b.Why(&keyed[i], 0).Ahead[3], 2*i+1; got != want {
			t.Errorf("entry %d of the key: %d ahead, want %d", i, got, want)
		}
	}
	for _, ahead := range []int{0, 1, 9} { // of the run
		want := ahead + min(ahead+1, len(keyed)) // at most
		if got := run.Why(ahead, 1, 0).Ahead[3]; got < want-1 || got > want {
			t.Errorf("piece %d of the run: %d ahead, want %d", ahead, got, want)
		}
	}
	if got, want := b.Why(&lower, 0).Ahead, [backlog.Tiers]int{3: 14}; got != want {
		t.Errorf("entry of a lower tier: %v ahead, want %v", got, want)
	}
	for i := range 300 { // more keys than Why looks at
		a := backlog.Arrival{Tier: 3, Key: fmt.Sprintf("a%d", i), Weight: 1}
		b.PushAt(&backlog.Entry[int]{}, a, uint64(200+i))
	}
	if got, want := run.Why(7, 1, 0).Ahead[3], 7+4+300; got != want {
		t.Errorf("piece 7 of the run, among many keys: %d ahead, want %d", got, want)
	}
}
