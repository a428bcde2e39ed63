package lease_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue/internal/lease"
)

// A row is free when the slots of all its entries are, and the lowest free row is taken.
func TestRows(t *testing.T) {
	random := seeded.Rand(t)
	var r lease.Rows
	rows, last := make(map[int]int), 0 // by slot; the model
	lowest := func() int {
		for row := 1; row <= last; row++ {
			if !slices.Contains(slices.Collect(maps.Values(rows)), row) {
				return row
			}
		}
		last++
		return last
	}
	for range 5000 {
		switch slots := random.Perm(20)[:random.IntN(4)]; {
		case random.IntN(100) == 0 && last < 30:
			for _, slot := range slots {
				delete(rows, slot)
			}
			last++
			if row := r.Append(slots...); row != last {
				t.Fatalf("row %d is appended to %d rows", row, last-1)
			}
			for _, slot := range slots {
				rows[slot] = last
			}
		case random.IntN(2) == 0:
			slot := random.IntN(25)
			r.Free(slot)
			delete(rows, slot)
		case len(slots) > 0:
			want := lowest()
			if row := r.Take(slots...); row != want {
				t.Fatalf("row %d is taken, and %d is the lowest that is free of %d", row, want, last)
			}
			for _, slot := range slots {
				rows[slot] = want
			}
		}
	}
	if last > 30 {
		t.Errorf("20 slots have %d rows", last)
	}
}
