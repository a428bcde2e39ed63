package backlog_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/internal/seeded"
)

// starts starts all that is queued and returns the values in that order.
func starts(b *backlog.Backlog[int]) (values []int) {
	for e := b.Peek(0); e != nil; e = b.Peek(0) {
		values = append(values, e.Value)
		key := e.Key()
		b.Start(e)
		b.Keys().Finish(key)
	}
	return values
}

func TestAged_GoesBeforeTheYounger(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	entries := make([]backlog.Entry[int], 6)
	for i := range entries {
		entries[i].Value = i
		b.Push(&entries[i], backlog.Arrival{Tier: 3, Key: "k", Weight: 1})
	}
	for range 4 {
		b.Start(b.Peek(0))
	}
	for _, i := range []int{2, 0, 3, 1} {
		b.PushAt(&entries[i], backlog.Arrival{Tier: 3, Key: "k", Weight: 1}, entries[i].Ticket())
	}
	if !b.Remove(&entries[2]) {
		t.Error("an entry that came back cannot be removed")
	}
	late := &backlog.Entry[int]{Value: 6}
	b.Push(late, backlog.Arrival{Tier: 3, Key: "k", Weight: 1})
	if got, want := starts(b), []int{0, 1, 3, 4, 5, 6}; !slices.Equal(got, want) {
		t.Errorf("started in the order %v, want %v", got, want)
	}
}

// An entry that comes back when nothing younger waits is in the FIFO, and one
// that is older still goes before it.
func TestAged_OlderThanOneThatIsAloneInTheFIFO(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	for _, ticket := range []uint64{7, 9, 8, 3} {
		b.PushAt(&backlog.Entry[int]{Value: int(ticket)}, backlog.Arrival{Tier: 0, Weight: 1}, ticket)
	}
	b.Start(b.Peek(0)) // 3
	b.Start(b.Peek(0)) // 7
	b.Start(b.Peek(0)) // 8
	b.PushAt(&backlog.Entry[int]{Value: 4}, backlog.Arrival{Tier: 0, Weight: 1}, 4)
	if got, want := starts(b), []int{4, 9}; !slices.Equal(got, want) {
		t.Errorf("started in the order %v, want %v", got, want)
	}
}

func TestAged_ManyInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seeded.Seed(t), 0))
	b := backlog.New[int](backlog.Config{Max: 1})
	entries := make([]backlog.Entry[int], 5000)
	b.PushAt(&entries[0], backlog.Arrival{Tier: 3, Weight: 1}, uint64(len(entries)+1)) // younger than all
	var want []int
	for _, i := range rnd.Perm(len(entries) - 1) {
		e := &entries[i+1]
		e.Value = i + 1
		b.PushAt(e, backlog.Arrival{Tier: 3, Weight: 1}, uint64(i+1))
	}
	for i := range entries {
		if i > 0 && rnd.IntN(2) == 0 {
			b.Remove(&entries[i])
		} else if i > 0 {
			want = append(want, i)
		}
	}
	if got := starts(b); !slices.Equal(got, append(want, 0)) {
		t.Error("entries that came back did not start in the order of their age")
	}
}

// An entry that comes back has no more claim than its key: its start is charged
// again.
func TestAged_StartsAreCharged(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	fill(b, 3, "fails", 100)
	fill(b, 3, "works", 100)
	got := map[string]int{}
	for range 100 {
		e := b.Peek(0)
		key := e.Key()
		got[key]++
		b.Start(e)
		b.Keys().Finish(key)
		if key == "fails" {
			b.PushAt(e, backlog.Arrival{Tier: 3, Key: key, Weight: 1}, e.Ticket())
		}
	}
	if got["fails"] != 50 || got["works"] != 50 {
		t.Errorf("starts %v, want half each", got)
	}
}

// After a restart all entries come in the order of their tickets. That needs
// nothing beside the FIFOs, and later arrivals are younger.
func TestAged_RestartInOrder(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	fill(b, 3, "k", 1)
	entries := make([]backlog.Entry[int], 101)
	ticket := uint64(1000)
	allocs := testing.AllocsPerRun(100, func() {
		b.PushAt(&entries[ticket-1000], backlog.Arrival{Tier: 3, Key: "k", Weight: 1}, ticket)
		ticket++
	})
	if allocs != 0 {
		t.Errorf("an entry that comes in the order of age allocates %v times", allocs)
	}
	e := &backlog.Entry[int]{}
	b.Push(e, backlog.Arrival{Tier: 3, Key: "k", Weight: 1})
	if e.Ticket() != ticket {
		t.Errorf("the next arrival has ticket %d, want %d", e.Ticket(), ticket)
	}
}

func TestAged_WhyAndEntries(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	entries := make([]backlog.Entry[int], 10)
	for i := range entries {
		entries[i].Value = i
		b.Push(&entries[i], backlog.Arrival{Tier: 3, Weight: 1})
	}
	for range 5 {
		b.Start(b.Peek(0))
	}
	for _, i := range []int{3, 1, 4} {
		b.PushAt(&entries[i], backlog.Arrival{Tier: 3, Weight: 1}, entries[i].Ticket())
	}
	var order []int
	for place, e := range b.Entries() {
		order = append(order, e.Value)
		if got := b.Why(e, 0).Ahead[3]; got != place {
			t.Errorf("entry %d: %d ahead, want %d", e.Value, got, place)
		}
	}
	if want := []int{1, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(order, want) {
		t.Errorf("entries %v, want %v", order, want)
	}
}

// A durable queue keeps one for every task that waits.
func TestEntry_Size(t *testing.T) {
	if size := unsafe.Sizeof(backlog.Entry[struct{}]{}); size > 48 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("an entry has %d bytes, want at most 48", size)
	}
}
