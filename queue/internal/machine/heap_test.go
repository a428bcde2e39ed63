package machine //nolint:testpackage // the heap alone, against a list

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
)

// The heap behaves as a list that is searched.
func TestHeapAgainstAList(t *testing.T) {
	type one struct {
		place uint32
		rank  int64
	}
	rnd := rand.New(rand.NewPCG(seeded.Seed(t), 1))
	h := heap[*one]{index: func(o *one) *uint32 { return &o.place }}
	all := make([]one, 50)
	for range 20_000 {
		o := &all[rnd.IntN(len(all))]
		if rnd.IntN(3) == 0 {
			h.remove(o)
		} else {
			o.rank = rnd.Int64N(1000)
			h.set(o, o.rank)
		}
		var set []int64
		for i := range all {
			if all[i].place > 0 {
				set = append(set, all[i].rank)
			}
		}
		slices.Sort(set)
		first, ok := h.first()
		if len(set) != len(h.all) || ok != (len(set) > 0) || ok && (first.rank != set[0] || first.of.rank != set[0]) {
			t.Fatalf("%d set, %d in the heap, first %v", len(set), len(h.all), first)
		}
		limit, n := rnd.Int64N(1000), 0
		h.before(limit, func(o *one) {
			if n++; o.rank > limit {
				t.Fatalf("%d comes before %d", o.rank, limit)
			}
		})
		if i, _ := slices.BinarySearch(set, limit+1); i != n {
			t.Fatalf("%d before %d, want %d", n, limit, i)
		}
	}
}
