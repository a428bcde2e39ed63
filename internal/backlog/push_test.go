package backlog_test

import (
	"math"
	"runtime"
	"testing"
	"weak"

	"github.com/stintgo/stint/internal/backlog"
)

// An entry is in one queue at most.
func TestA2_PushOfAQueuedEntryPanics(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	var e backlog.Entry[int]
	b.Push(&e, backlog.Arrival{Tier: 3, Weight: 1})
	defer func() {
		if recover() == nil {
			t.Error("an entry that is queued was queued again")
		}
		if b.Len() != 1 || !b.Remove(&e) || b.Len() != 0 {
			t.Errorf("%d entries are left, want 0", b.Len())
		}
	}()
	b.Push(&e, backlog.Arrival{Tier: 4, Key: "k", Weight: 1})
}

// An entry that has left does not keep its neighbours in memory.
func TestA2_EntryThatHasLeftKeepsNoOther(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	var neighbours [2]weak.Pointer[backlog.Entry[int]]
	middle := new(backlog.Entry[int])
	func() {
		first, last := new(backlog.Entry[int]), new(backlog.Entry[int])
		neighbours = [2]weak.Pointer[backlog.Entry[int]]{weak.Make(first), weak.Make(last)}
		for _, e := range []*backlog.Entry[int]{first, middle, last} {
			b.Push(e, backlog.Arrival{Tier: 3, Weight: 1})
		}
		for _, e := range []*backlog.Entry[int]{middle, first, last} {
			b.Remove(e)
		}
	}()
	runtime.GC()
	for i, p := range neighbours {
		if p.Value() != nil {
			t.Errorf("neighbour %d is kept by an entry that has left", i)
		}
	}
	runtime.KeepAlive(middle)
}

// The end of something that never ran does not raise the limit of its key.
func TestA5_FinishOfAKeyThatDoesNotRun(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, PerKey: 1})
	fill(b, 3, "k", 3)
	b.Keys().Finish("k")
	if n := b.Keys().Running("k"); n != 0 {
		t.Errorf("%d of the key run, want 0", n)
	}
	b.Start(b.Peek(0))
	if e := b.Peek(1); e != nil {
		t.Error("a second entry of the key may start, its limit is 1")
	}
}

// A share so large that a start would take no virtual time counts as the largest that
// does.
func TestA5_HugeShare(t *testing.T) {
	for _, share := range []int{1 << 20, 1<<20 + 1, math.MaxInt32, math.MaxInt} {
		b := backlog.New[int](backlog.Config{Max: 1, Share: func(string) int { return share }})
		fill(b, 3, "a", 1000)
		fill(b, 3, "b", 1000)
		last := &backlog.Entry[int]{}
		b.Push(last, backlog.Arrival{Tier: 3, Key: "b", Weight: 1})
		if got := b.Why(last, 0).Ahead[3]; got < 2000 {
			t.Errorf("share %d: %d ahead of the last entry, want 2000", share, got)
		}
		got := map[string]int{}
		for range 100 {
			e := b.Peek(0)
			got[e.Key()]++
			b.Start(e)
		}
		if got["a"] != 50 || got["b"] != 50 {
			t.Errorf("share %d of both: starts %v, want half each", share, got)
		}
	}
}

// The first flow of a key is part of the key's record, also after an earlier one was
// forgotten.
func TestA5_FlowOfAKnownKeyAllocatesNothing(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	b.Keys().Admit("k")
	e := &backlog.Entry[int]{}
	allocs := testing.AllocsPerRun(100, func() {
		b.Push(e, backlog.Arrival{Tier: 3, Key: "k", Weight: 1})
		b.Remove(e)
	})
	if allocs != 0 {
		t.Errorf("an entry of a key that runs allocates %v times", allocs)
	}
}
