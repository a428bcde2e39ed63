package machine //nolint:testpackage // the numbers alone, against a sorted list

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
)

// The list of numbers behaves as a sorted slice does, while numbers are added and removed
// at the end, at the beginning and anywhere.
func TestAscendingAgainstAList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seeded.Seed(t), 3))
	ids := make([]queue.ID, 1, 1<<16)
	a := ascending{id: func(no uint32) *queue.ID { return &ids[no] }}
	var in []uint32
	place := func(id queue.ID) (int, bool) {
		return slices.BinarySearchFunc(in, id, func(no uint32, id queue.ID) int { return bytes.Compare(ids[no][:], id[:]) })
	}
	const rounds = 30_000
	for round := range rounds {
		if len(in) == 0 || rnd.IntN(10) < 4+2*(round/(rounds/4)%2) {
			at := uint64(round)
			if rnd.IntN(4) == 0 {
				at = rnd.Uint64N(rounds)
			}
			var id queue.ID
			binary.BigEndian.PutUint64(id[:], at)
			binary.BigEndian.PutUint64(id[8:], uint64(round)+1)
			no := uint32(len(ids))
			ids = append(ids, id)
			a.add(no)
			i, _ := place(id)
			in = slices.Insert(in, i, no)
		} else {
			i := rnd.IntN(len(in)) * rnd.IntN(2)
			a.remove(in[i])
			in = slices.Delete(in, i, i+1)
		}
		if round%100 == 0 {
			checkAscending(t, &a, in, ids, rnd)
		}
	}
}

// Leaves with few numbers are merged, whichever of two neighbours lost its numbers last.
func TestAscendingMergesLeaves(t *testing.T) {
	for name, order := range map[string][2]int{
		"the later leaf last": {0, leafSize}, "the earlier leaf last": {leafSize, 0},
	} {
		ids := make([]queue.ID, 2*leafSize)
		a := ascending{id: func(no uint32) *queue.ID { return &ids[no] }}
		for no := range ids {
			binary.BigEndian.PutUint64(ids[no][:], uint64(no))
			a.add(uint32(no))
		}
		for _, from := range order {
			for no := from + 1; no < from+leafSize; no++ {
				a.remove(uint32(no))
			}
		}
		if len(a.leaves) != 1 {
			t.Errorf("%s: two numbers are in %d leaves", name, len(a.leaves))
		}
	}
}

func checkAscending(t *testing.T, a *ascending, in []uint32, ids []queue.ID, rnd *rand.Rand) {
	t.Helper()
	for l := range a.leaves {
		if n := len(a.leaves[l]); n == 0 || n > leafSize || l > 0 && n+len(a.leaves[l-1]) <= leafSize/2 {
			t.Fatalf("leaf %d of %d has %d numbers", l, len(a.leaves), n)
		}
	}
	for _, down := range []bool{false, true} {
		want := slices.Clone(in)
		if down {
			slices.Reverse(want)
		}
		behind := queue.ID{}
		if n := rnd.IntN(len(ids)); n > 0 { // one that is or was in the list
			behind = ids[n]
			want = slices.DeleteFunc(want, func(no uint32) bool {
				order := bytes.Compare(ids[no][:], behind[:])
				return order == 0 || order < 0 != down
			})
		}
		var got []uint32
		most := rnd.IntN(len(in) + 2)
		end := a.from(behind, down, func(no uint32) bool {
			got = append(got, no)
			return len(got) < most
		})
		if most = max(most, 1); most <= len(want) {
			want = want[:most]
		}
		if !slices.Equal(got, want) || end != (len(got) < most) {
			t.Fatalf("down %v: %d numbers (to the end: %v), want %d", down, len(got), end, len(want))
		}
	}
}
