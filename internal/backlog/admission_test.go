package backlog_test

import (
	"math"
	"sync"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

func TestHighest_WhatMayStart(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 9, Caps: [backlog.Tiers]int{2: 8, 3: 3}, PerKey: 1})
	want := func(when string, running, tier int) {
		t.Helper()
		if got := b.Highest(running); got != tier {
			t.Errorf("%s, %d running: tier %d, want %d", when, running, got, tier)
		}
	}
	want("nothing queued", 0, -1)
	fill(b, 3, "", 100)
	want("one tier", 2, 3)
	want("at its cap", 3, -1)
	fill(b, 2, "", 100)
	want("one below it", 3, 2)
	want("all at their caps", 8, -1)
	fill(b, 5, "k", 2)
	want("a key has room", 2, 5)
	b.Start(b.Peek(0))
	want("its key is at its limit", 2, 3)
	b.Keys().Finish("k")
	want("its key has room again", 2, 5)
}

// The guard's turn is one start, so it decides only where nothing else may start.
func TestHighest_GuardAlone(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 9, Caps: [backlog.Tiers]int{0: 1}})
	fill(b, 0, "", 1)
	for range backlog.Cycle/backlog.Tiers - 1 { // tier 0 has the last of eight turns
		if got := b.Highest(5); got != -1 {
			t.Errorf("a tier above its cap: %d", got)
		}
		fill(b, 6, "", 1)
		b.Start(b.Peek(5))
	}
	fill(b, 6, "", 1)
	if got := b.Highest(5); got != 6 {
		t.Errorf("the guard's turn of tier 0, and tier 6 waits: %d", got)
	}
	e := b.Entries()[1]
	b.Remove(e)
	if got := b.Highest(5); got != 0 {
		t.Errorf("the guard's turn of tier 0 alone: %d", got)
	}
	if got := b.Highest(9); got != -1 {
		t.Errorf("all slots in use: %d", got)
	}
}

// The sum of the running slots and a weight may be more than an int of 32 bits holds.
func TestB2_LargestWeightBesideARunningEntry(t *testing.T) {
	const most = math.MaxInt32
	b := backlog.New[int](backlog.Config{Max: most})
	if b.Admits(3, "", most, 1) || !b.Admits(3, "", most, 0) || !b.Admits(3, "", most-1, 1) {
		t.Error("an arrival of the largest weight starts beside a running entry, or an arrival that fits does not")
	}
	if r := b.WhyNot(3, "", most, 1); !r.Full {
		t.Errorf("why an arrival does not start: %+v, want that the maximum keeps it", r)
	}
	e := &backlog.Entry[int]{}
	b.Push(e, backlog.Arrival{Tier: 3, Weight: most})
	if b.Peek(1) != nil || b.PeekOf(1, []int{0}) != nil || b.Peek(0) != e {
		t.Error("an entry of the largest weight starts beside a running one, or alone does not")
	}
	if b.Admits(2, "", 1, 1) {
		t.Error("an arrival of a lower tier passes an entry that waits for slots")
	}
	if r := b.Why(e, 1); !r.Full {
		t.Errorf("why the entry waits: %+v, want that the maximum keeps it", r)
	}
	for place := range backlog.Scan(b, new(sync.Mutex), func(*backlog.Entry[int]) int { return 0 }).All(1) {
		if !place.Reasons.Full {
			t.Errorf("why the entry of a snapshot waits: %+v, want that the maximum keeps it", place.Reasons)
		}
	}
	own := backlog.New[int](backlog.Config{Max: most})
	own.Push(&backlog.Entry[int]{}, backlog.Arrival{Tier: 1, Weight: most})
	for range 56 { // until the guard serves tier 1, whose entry then holds back tier 2
		if own.WhyNot(2, "", 1, 1).Reserved {
			return
		}
		own.Pass(1)
	}
	t.Error("the guard reserves no slots for an entry of the largest weight")
}
