package backlog_test

import (
	"strconv"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

func TestB2_CapInheritance(t *testing.T) {
	type caps = [backlog.Tiers]int
	for _, c := range []struct {
		name string
		max  int
		set  caps
		want caps
	}{
		{"none set", 100, caps{}, caps{100, 100, 100, 100, 100, 100, 100}},
		{"the example", 100, caps{0: 5, 2: 20}, caps{5, 5, 20, 100, 100, 100, 100}},
		{"only the middle", 10, caps{3: 4}, caps{4, 4, 4, 4, 10, 10, 10}},
		{"above max", 10, caps{1: 50}, caps{10, 10, 10, 10, 10, 10, 10}},
		{"topmost tier set", 9, caps{0: 1, 6: 7}, caps{1, 1, 1, 1, 1, 1, 7}},
		{"not ascending", 9, caps{2: 8, 3: 3}, caps{8, 8, 8, 3, 9, 9, 9}},
		{"no capacity", 0, caps{1: 5}, caps{}},
	} {
		if got := backlog.Resolve(c.max, c.set); got != c.want {
			t.Errorf("%s: Resolve(%d, %v) = %v, want %v", c.name, c.max, c.set, got, c.want)
		}
	}
}

// fill queues n entries of one tier, named by consecutive numbers.
func fill(b *backlog.Backlog[int], tier int, key string, n int) {
	for i := range n {
		b.Push(&backlog.Entry[int]{Value: i}, backlog.Arrival{Tier: int8(tier), Key: key, Weight: 1})
	}
}

func TestB3_SharesAreExact(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	for tier := range backlog.Tiers {
		fill(b, tier, "", 10*backlog.Cycle)
	}
	var order []int
	for range 4 * backlog.Cycle {
		e := b.Peek(0)
		order = append(order, e.Tier())
		b.Start(e)
	}
	for from := range len(order) - backlog.Cycle {
		var got [backlog.Tiers]int
		for _, tier := range order[from : from+backlog.Cycle] {
			got[tier]++
		}
		if want := [backlog.Tiers]int{1, 1, 1, 1, 1, 1, 50}; got != want {
			t.Fatalf("turns %d to %d went to the tiers %v, want %v", from, from+backlog.Cycle, got, want)
		}
	}
}

// Whatever floods the other tiers and at whichever turn it arrives, an entry
// with n entries before it in its tier starts within Cycle·(n+1) turns, and no
// tier but the highest can be beaten to exactly that.
func TestB3_StarvationBound(t *testing.T) {
	for phase := range backlog.Cycle {
		for tier := range backlog.Tiers {
			for _, ahead := range []int{0, 1, 5} {
				waited := turnsUntilStart(phase, tier, ahead)
				if bound := backlog.Cycle * (ahead + 1); waited > bound {
					t.Fatalf("turn %d, tier %d, %d ahead: started after %d turns, bound is %d",
						phase, tier, ahead, waited, bound)
				}
			}
		}
	}
}

// takeTurn is a finish that leaves running slots in use.
func takeTurn(b *backlog.Backlog[int], running int) {
	if e := b.Peek(running); e != nil {
		b.Start(e)
		return
	}
	b.Pass(running)
}

func turnsUntilStart(phase, tier, ahead int) int {
	// The caps leave every tier but the highest shut: only the guard lets it in.
	b := backlog.New[int](backlog.Config{Max: 10, Caps: [backlog.Tiers]int{1, 1, 1, 1, 1, 1, 10}})
	for i := range backlog.Tiers {
		if i != tier {
			fill(b, i, "", 400)
		}
	}
	for range phase {
		takeTurn(b, 9)
	}
	fill(b, tier, "", ahead)
	e := &backlog.Entry[int]{Value: -1}
	b.Push(e, backlog.Arrival{Tier: int8(tier), Weight: 1})
	for turns := 1; ; turns++ {
		takeTurn(b, 9)
		if !e.Queued() {
			return turns
		}
	}
}

// A tier that is over its cap gets its guard turns although only arrivals that
// start at once keep the total up.
func TestB3_GuardCountsFinishesThatStartNothing(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, Caps: [backlog.Tiers]int{0: 2, 3: 10}})
	fill(b, 0, "", 1)
	for finish := range backlog.Cycle {
		if e := b.Peek(5); e != nil {
			if e.Tier() != 0 || finish == 0 {
				t.Fatalf("finish %d: started tier %d at once, above its cap", finish, e.Tier())
			}
			return
		}
		b.Pass(5)
	}
	t.Fatal("the guard never let the lowest tier in")
}

func TestB3_EmptyShareGoesToTheHighestWithinCaps(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, Caps: [backlog.Tiers]int{2: 3, 4: 10}})
	fill(b, 2, "", 100)
	fill(b, 4, "", 100)
	got := map[int]int{}
	for range backlog.Cycle {
		e := b.Peek(5)
		got[e.Tier()]++
		b.Start(e)
	}
	if got[2] != 1 || got[4] != backlog.Cycle-1 {
		t.Errorf("starts by tier %v, want one of tier 2 and the rest of tier 4", got)
	}
}

func TestA5_KeysShareByWeight(t *testing.T) {
	shares := map[string]int{"a": 1, "b": 2, "c": 5}
	b := backlog.New[int](backlog.Config{Max: 1, Share: func(key string) int { return shares[key] }})
	for key := range shares {
		fill(b, 3, key, 1000)
	}
	fill(b, 3, "", 1000) // entries without a key are one more key with share 1
	got := map[string]int{}
	for range 900 {
		e := b.Peek(0)
		got[e.Key()]++
		b.Start(e)
	}
	for key, want := range map[string]int{"": 100, "a": 100, "b": 200, "c": 500} {
		if diff := got[key] - want; diff < -1 || diff > 1 {
			t.Errorf("key %q started %d of 900, want %d", key, got[key], want)
		}
	}
}

// A key that queues one entry at a time must not overtake one that has a backlog:
// it would if it were forgotten whenever its queue runs empty.
func TestA5_OneAtATimeDoesNotStarveABacklog(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	fill(b, 3, "backlogged", 1000)
	got := map[string]int{}
	for range 200 {
		if b.LenTier(3) < 1001-got["backlogged"] {
			fill(b, 3, "greedy", 1)
		}
		e := b.Peek(0)
		got[e.Key()]++
		b.Start(e)
		b.Keys().Finish("")
	}
	if got["backlogged"] < 99 {
		t.Errorf("starts %v, want about half each", got)
	}
}

// A stream of keys that are all new, each with one entry, must not go before
// the second entry of a known key for ever.
func TestB3_NewKeysDoNotStarveKnownOnes(t *testing.T) {
	for _, known := range []string{"", "known"} {
		b := backlog.New[int](backlog.Config{Max: 1})
		fill(b, 3, known, 2)
		second := 0
		for turn := 1; second == 0; turn++ {
			if turn > 20 {
				t.Fatalf("key %q: its second entry has not started after %d turns", known, turn)
			}
			fill(b, 3, "new "+strconv.Itoa(turn), 1)
			e := b.Peek(0)
			if e.Key() == known && e.Value == 1 {
				second = turn
			}
			b.Start(e)
		}
	}
}

// A key that spends its time at its limit has no claim on the time it missed.
func TestA5_KeyAtItsLimitGetsNoCredit(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, PerKey: 1})
	fill(b, 3, "limited", 50)
	fill(b, 3, "a", 500)
	b.Start(b.Peek(0)) // limited runs
	b.Keys().SetPerKey(0)
	b.Keys().SetPerKey(1)
	for range 100 {
		b.Start(b.Peek(1))
		b.Keys().Finish("a")
	}
	b.Keys().SetPerKey(0)
	b.Keys().Finish("limited")
	got := map[string]int{}
	for range 40 {
		e := b.Peek(0)
		got[e.Key()]++
		b.Start(e)
	}
	if got["limited"] > 21 {
		t.Errorf("after its limit was gone, the key took %d of 40 turns, want half", got["limited"])
	}
}

func TestA5_IdleKeysCostNoMemory(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 4, PerKey: 1})
	for i := range 10_000 {
		key := strconv.Itoa(i)
		fill(b, i%backlog.Tiers, key, 1)
		e := b.Peek(0)
		key = e.Key()
		b.Start(e)
		b.Keys().Finish(key)
	}
	if n := b.Keys().Len(); n != 0 {
		t.Errorf("%d keys are remembered with nothing running or waiting", n)
	}
}

func TestA2_HeavyEntryIsNotPassedOver(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	b.Push(&backlog.Entry[int]{}, backlog.Arrival{Tier: 3, Weight: 5})
	fill(b, 3, "", 1)
	fill(b, 2, "", 1)
	if e := b.Peek(8); e != nil {
		t.Fatalf("an entry of tier %d and weight %d passed the heavy one", e.Tier(), e.Weight())
	}
	if got, want := b.Closed(8), uint8(0b0001111); got != want {
		t.Errorf("closed tiers %07b, want %07b: lower arrivals must not take what the heavy one waits for", got, want)
	}
	if e := b.Peek(5); e == nil || e.Weight() != 5 {
		t.Error("the heavy entry does not start when its slots are free")
	}
}

func TestWhy_Reasons(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, Caps: [backlog.Tiers]int{2: 4}, PerKey: 1})
	b.Keys().Admit("k")
	keyed := &backlog.Entry[int]{}
	b.Push(keyed, backlog.Arrival{Tier: 2, Key: "k", Weight: 1})
	fill(b, 5, "", 3)
	fill(b, 2, "", 2)
	last := &backlog.Entry[int]{}
	b.Push(last, backlog.Arrival{Tier: 2, Weight: 2})

	r := b.Why(keyed, 1)
	if !r.AtLimit || r.Key != "k" || r.KeyRuns != 1 || r.PerKey != 1 || r.AtCap || r.Full {
		t.Errorf("key at its limit: %+v", r)
	}
	r = b.Why(last, 9)
	if !r.Full || !r.AtCap || r.Cap != 4 || r.AtLimit {
		t.Errorf("full and over the cap: %+v", r)
	}
	if want := [backlog.Tiers]int{2: 2, 5: 3}; r.Ahead != want {
		t.Errorf("ahead %v, want %v", r.Ahead, want)
	}
	if want := 2*8 + 7; r.GuardIn != want {
		t.Errorf("guard's turn in %d, want %d", r.GuardIn, want)
	}
	r = b.WhyNot(2, "k", 1, 4)
	if !r.AtLimit || !r.AtCap || r.Ahead[5] != 3 || r.Ahead[2] != 4 {
		t.Errorf("arrival: %+v", r)
	}
}

// An entry that lacks only slots holds back arrivals of its tier, which wait behind it,
// and those of lower tiers, of which nothing waits.
func TestWhy_Reserved(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	b.Push(&backlog.Entry[int]{}, backlog.Arrival{Tier: 3, Weight: 5})
	for tier, want := range [backlog.Tiers]bool{0: true, 1: true, 2: true} {
		if r := b.WhyNot(tier, "", 1, 8); r.Reserved != want || r.Full || r.AtCap {
			t.Errorf("arrival in tier %d: %+v, want it held back by the reservation alone: %v", tier, r, want)
		}
		if r := b.WhyNot(tier, "", 1, 5); r.Reserved {
			t.Errorf("arrival in tier %d: %+v, though the heavy entry may start", tier, r)
		}
	}
}

func TestWhy_PlaceInALongQueue(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	const n = 50_000
	entries := make([]backlog.Entry[int], n)
	for i := range entries {
		b.Push(&entries[i], backlog.Arrival{Tier: 3, Weight: 1})
	}
	for _, i := range []int{0, 1, 4000, 20_000, 25_000, n - 2, n - 1} {
		got := b.Why(&entries[i], 0).Ahead[3]
		if diff := got - i; diff < -1 || diff > 1 {
			t.Errorf("entry %d: %d ahead", i, got)
		}
	}
}
