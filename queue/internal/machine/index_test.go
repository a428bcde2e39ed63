package machine //nolint:testpackage // the index alone, against a map

import (
	"encoding/binary"
	"hash/maphash"
	"math/rand/v2"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
)

// The index behaves as a map, while it grows and shrinks.
func TestIndexAgainstAMap(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seeded.Seed(t), 2))
	const most = 20_000
	ids := make([]queue.ID, most+1)
	for no := range ids {
		binary.BigEndian.PutUint64(ids[no][:], uint64(no)) // as similar as possible
	}
	x := index{seed: maphash.MakeSeed(), id: func(no uint32) *queue.ID { return &ids[no] }}
	in := map[uint32]bool{}
	for round := range 20 * most {
		no := uint32(1 + rnd.IntN(most))
		if in[no] != (x.get(&ids[no]) == no) {
			t.Fatalf("round %d: %d is in: %v, found: %d", round, no, in[no], x.get(&ids[no]))
		}
		adding := rnd.IntN(most) < most/4+most/2*(round/most%2) // the index fills up, and empties again
		switch {
		case in[no] && !adding:
			x.remove(&ids[no])
			delete(in, no)
		case !in[no] && adding:
			x.add(&ids[no], no)
			in[no] = true
		}
	}
	for no := range ids[1:] {
		if no := uint32(no + 1); in[no] != (x.get(&ids[no]) == no) {
			t.Errorf("in the end %d is in: %v, found: %d", no, in[no], x.get(&ids[no]))
		}
	}
}

// An index that is filled at once finds the same tasks as one to which they are added,
// and continues like it.
func TestIndexFilledAtOnce(t *testing.T) {
	for _, n := range []uint32{0, 1, 5, 1000, 50_000} {
		ids := make([]queue.ID, 2*n+2)
		for no := range ids {
			binary.BigEndian.PutUint64(ids[no][:], uint64(no))
		}
		x := index{seed: maphash.MakeSeed(), id: func(no uint32) *queue.ID { return &ids[no] }}
		x.fill(n)
		for no := n + 1; no <= 2*n; no++ {
			x.add(&ids[no], no)
		}
		for no := uint32(1); no <= 2*n; no += 2 {
			x.remove(&ids[no])
		}
		for no := uint32(1); no <= 2*n; no++ {
			want := no
			if no%2 == 1 {
				want = 0
			}
			if got := x.get(&ids[no]); got != want {
				t.Fatalf("of %d, %d is found as %d, want %d", n, no, got, want)
			}
		}
	}
}
