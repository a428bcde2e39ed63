package shrink_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/internal/shrink"
)

// Random insertions and deletions, of which one kind prevails for some time, leave
// what they leave in a plain map.
func TestModel_DeleteMatchesPlainMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seeded.Seed(t), 0))
	got, want, peak := map[int]int{}, map[int]int{}, 0
	for i := range 200_000 {
		key, inserts := rnd.IntN(5000), 1+8*(i/20_000%2)
		if rnd.IntN(10) < inserts {
			got[key], want[key] = i, i
		} else {
			shrink.Delete(&got, &peak, key)
			delete(want, key)
		}
		if len(got) != len(want) {
			t.Fatalf("%d entries after %d steps, want %d", len(got), i, len(want))
		}
	}
	if !maps.Equal(got, want) {
		t.Error("the entries differ from those of a plain map")
	}
}

// Copies are few: of a map that loses all its n entries, fewer than n/2 are copied.
func TestDelete_IsAmortized(t *testing.T) {
	const n = 100_000
	m, peak, copied := map[int]int{}, 0, 0
	for i := range n {
		m[i] = i
	}
	for i := range n {
		before := peak
		shrink.Delete(&m, &peak, i)
		if before > 0 && peak < before {
			copied += len(m)
		}
	}
	if copied == 0 || copied > n/2 {
		t.Errorf("%d entries were copied while %d were deleted, want from 1 to %d", copied, n, n/2)
	}
}

// A range over a map that is replaced meanwhile comes to every entry once.
func TestDelete_DuringARange(t *testing.T) {
	const n = 10_000
	m, peak, seen := map[int]int{}, 0, 0
	for i := range n {
		m[i] = i
	}
	for key := range m {
		seen++
		shrink.Delete(&m, &peak, key)
	}
	if seen != n || len(m) != 0 {
		t.Errorf("a range that deletes came to %d of %d entries and left %d", seen, n, len(m))
	}
}

func TestPop_FollowsTheLength(t *testing.T) {
	const n = 100_000
	s := make([]int, 0, n)
	for i := range n {
		s = append(s, i)
	}
	copied := 0
	for want := n - 1; want >= 0; want-- {
		before := cap(s)
		if s = shrink.Pop(s); len(s) != want || want > 0 && s[want-1] != want-1 {
			t.Fatalf("%d elements, want %d", len(s), want)
		}
		if cap(s) != before {
			copied += len(s)
		}
		if cap(s) > max(256, 4*len(s)+4) {
			t.Fatalf("the array has room for %d elements, and %d are left", cap(s), len(s))
		}
	}
	if copied > n {
		t.Errorf("%d elements were copied while %d were removed", copied, n)
	}
}

// What is removed must not be kept from the garbage collector.
func TestPop_ClearsTheElement(t *testing.T) {
	s := []*int{new(int), new(int)}
	shrink.Pop(s)
	if s[1] != nil || !slices.Contains(s, s[0]) {
		t.Error("the element that was removed is still in the array")
	}
}

func TestClear_KeepsASmallArray(t *testing.T) {
	small := []*int{new(int)}
	if s := shrink.Clear(small); len(s) != 0 || cap(s) != 1 || small[0] != nil {
		t.Errorf("a small slice is left with length %d, room for %d and %v", len(s), cap(s), small[0])
	}
	if s := shrink.Clear(make([]int, 10_000)); cap(s) != 0 {
		t.Errorf("a large slice is left with room for %d", cap(s))
	}
}
