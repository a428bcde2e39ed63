package remote_test

import (
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// having returns a server with tasks that have the given IDs.
func having(t *testing.T, ids []queue.ID) *remote.Server {
	t.Helper()
	store := memstore.New(memstore.Config{})
	tasks := make([]queue.NewTask, len(ids))
	for i, id := range ids {
		tasks[i] = queue.NewTask{ID: id, Spec: queue.Spec{Kind: "k"}}
	}
	if _, err := store.Submit(t.Context(), time.Now(), tasks); err != nil {
		t.Fatal(err)
	}
	return remote.On(store)
}

func parsed(t *testing.T, texts ...string) (ids []queue.ID) {
	t.Helper()
	for _, text := range texts {
		id, err := queue.ParseID(text)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// A suffix or prefix of an ID names a task if it matches only one; the error for several
// names them.
func TestC4_PartsOfIDs(t *testing.T) {
	ids := parsed(t,
		"01890a5d-ac96-774b-bcce-b302099a8057",
		"01890a5d-ac96-774c-8cce-b302099a8057",
		"01890a5e-0000-7fff-8cce-b302099a8157",
		"01890a5e-0001-7000-8cce-b302099a8057",
		"01890a5e-0001-7000-8cce-b302099a8058",
		"ffffffff-ffff-ffff-ffff-ffff0a5effff",
	)
	s := having(t, ids)
	for text, want := range map[string]int{
		ids[0].String(): 0, "01890A5D-AC96-774B": 0, "01890a5dac96774b": 0, "01890a5dac96774c8": 1,
		"01890a5e-0000": 2, "01890a5e0001700 ": -1, "01890a5e-0001-7000-8cce-b302099a8058": 4,
		"01890a5e0001700080cce": -1, "01890a5e000170008cceb302099a8057": 3, "ffffffff": 5,
		"8058": 4, "099A-8157": 2, remote.Short(ids[4]): 4, "b302099a8157": 2, "0a5effff": 5, "ffff": 5,
		"8cceb302099a8157": -1, // too long for a suffix
	} {
		id, err := s.ID(t.Context(), text)
		if want < 0 && err == nil || want >= 0 && (err != nil || id != ids[want]) {
			t.Errorf("%s: %s, %v", text, id, err)
		}
	}
	for text, says := range map[string]string{
		"01890a5d": "01890a5d may be " + ids[1].String() + " or " + ids[0].String() + ": give more digits",
		"0189-0a5": ids[4].String() + " or " + ids[3].String() + " or " + ids[2].String() + " or others: give more",
		"8057":     "8057 may be " + ids[3].String() + " or " + ids[1].String() + " or " + ids[0].String() + ": give more",
		"018":      "is not an ID: give the ID", "": "is not an ID", "wxyz": "is not an ID",
		strings.Repeat("0", 33): "is not an ID",
		"8059":                  "ends or begins with 8059",
		"01890a5f":              "begins with 01890a5f", "00000000": "begins with 00000000",
	} {
		_, err := s.ID(t.Context(), text)
		missing := strings.Contains(says, "begins")
		if err == nil || !strings.Contains(err.Error(), says) || missing != errors.Is(err, queue.ErrNotFound) {
			t.Errorf("%q: %v, want it to say %q", text, err, says)
		}
	}
	if _, err := s.IDs(t.Context(), []string{"01890a5e-0000", "01890a5e"}); err == nil {
		t.Error("one of two is no task")
	}
	if short := remote.Short(ids[1]); short != "099a8057" {
		t.Errorf("short: %s", short)
	}
}

// TestModel_PartsOfIDs looks up every prefix and suffix of similar IDs, and compares with
// a scan of all IDs.
func TestModel_PartsOfIDs(t *testing.T) {
	rng := seeded.Rand(t)
	for range 50 {
		ids := alike(rng, 1+rng.IntN(40))
		s := having(t, ids)
		for range 200 {
			id := ids[rng.IntN(len(ids))]
			if rng.IntN(4) == 0 {
				id = alike(rng, 1)[0]
			}
			digits := hex.EncodeToString(id[:])
			if n := 4 + rng.IntN(29); n <= 12 && rng.IntN(2) == 0 {
				digits = digits[32-n:]
			} else {
				digits = digits[:n]
			}
			var want []queue.ID
			for _, id := range ids {
				whole := hex.EncodeToString(id[:])
				if strings.HasPrefix(whole, digits) || len(digits) <= 12 && strings.HasSuffix(whole, digits) {
					want = append(want, id)
				}
			}
			got, err := s.ID(t.Context(), digits)
			switch {
			case len(want) == 1 && (err != nil || got != want[0]),
				len(want) == 0 && !errors.Is(err, queue.ErrNotFound),
				len(want) > 1 && (err == nil || errors.Is(err, queue.ErrNotFound)):
				t.Fatalf("%s among %s is %s, %v; want %s", digits, ids, got, err, want)
			}
		}
	}
}

// alike returns IDs whose bytes have few values, the extremes among them.
func alike(rng *rand.Rand, n int) []queue.ID {
	unique := make(map[queue.ID]bool)
	var ids []queue.ID
	for len(ids) < n {
		var id queue.ID
		same := rng.IntN(len(id))
		for i := range id {
			if id[i] = 0xff; i >= same {
				id[i] = [...]byte{0, 1, 0x7f, 0xff}[rng.IntN(4)]
			}
		}
		if !unique[id] && !id.IsZero() {
			unique[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}
