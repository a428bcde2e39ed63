package machine //nolint:testpackage // the heap alone, against a list

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

func seed(t *testing.T) uint64 {
	t.Helper()
	s := uint64(time.Now().UnixNano())
	if text := os.Getenv("STINT_SEED"); text != "" {
		var err error
		if s, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("STINT_SEED=%d", s)
	return s
}

// The heap against a list that is searched.
func TestTimersAgainstAList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seed(t), 1))
	var h timers
	all := make([]timer, 50)
	for range 20_000 {
		e := &all[rnd.IntN(len(all))]
		if rnd.IntN(3) == 0 {
			h.stop(e)
		} else {
			h.set(e, rnd.Int64N(1000))
		}
		var set []int64
		for i := range all {
			if all[i].pos > 0 {
				set = append(set, all[i].at)
			}
		}
		first := h.first()
		if len(set) != len(h) || first == nil != (len(set) == 0) || first != nil && first.at != slices.Min(set) {
			t.Fatalf("%d set, %d in the heap, first %v", len(set), len(h), first)
		}
	}
}
