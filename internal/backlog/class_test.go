package backlog_test

import (
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

// fillClass queues n entries of one class.
func fillClass(b *backlog.Backlog[int], tier int, key string, class, n int) {
	for i := range n {
		b.Push(&backlog.Entry[int]{Value: i}, backlog.Arrival{Tier: int8(tier), Key: key, Class: int32(class), Weight: 1})
	}
}

// take starts what is next of some classes, which must be something, and
// returns its key.
func take(t *testing.T, b *backlog.Backlog[int], classes ...int) (key string) {
	t.Helper()
	e := b.PeekOf(0, classes)
	if e == nil {
		t.Fatalf("nothing of the classes %v may start", classes)
	}
	if !slices.Contains(classes, e.Class()) {
		t.Fatalf("an entry of class %d starts, only %v are taken", e.Class(), classes)
	}
	key = e.Key()
	b.Start(e)
	b.Keys().Finish(key)
	return key
}

// A key has one share, over however many classes it spreads its entries; so
// have the entries without a key.
func TestA5_KeysShareAcrossClasses(t *testing.T) {
	for _, spread := range []string{"", "spread"} {
		b := backlog.New[int](backlog.Config{Max: 1})
		for class := range 5 {
			fillClass(b, 3, spread, class, 100)
		}
		fillClass(b, 3, "single", 4, 500)
		got := map[string]int{}
		for range 200 {
			got[take(t, b, 0, 1, 2, 3, 4)]++
		}
		if got[spread] != 100 || got["single"] != 100 {
			t.Errorf("starts %v, want 100 each", got)
		}
	}
}

// What a key starts in one class counts against it in all others, although
// a caller that takes from one class does not name the others.
func TestA5_StartsInOneClassCountInAnother(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	fillClass(b, 3, "both", 0, 1000)
	fillClass(b, 3, "both", 1, 1000)
	fillClass(b, 3, "second", 1, 1000)
	got := map[string]int{}
	for range 100 {
		got[take(t, b, 0)]++
		got[take(t, b, 1)]++
	}
	if diff := got["both"] - got["second"]; diff < -2 || diff > 2 {
		t.Errorf("starts %v, want as many of both keys", got)
	}
}

// What a key has queued in one class does not hold it back in another, nor does
// it move virtual time on for the keys that come later.
func TestA5_QueueInOneClassDoesNotCountInAnother(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	fillClass(b, 3, "busy", 0, 1000)
	fillClass(b, 3, "busy", 1, 1)
	fillClass(b, 3, "other", 1, 10)
	if keys := []string{take(t, b, 1), take(t, b, 1)}; !slices.Contains(keys, "busy") {
		t.Errorf("the keys %q started first, the only entry of the other was as early", keys)
	}
	fillClass(b, 3, "late", 0, 1)
	if keys := []string{take(t, b, 0), take(t, b, 0)}; !slices.Contains(keys, "late") {
		t.Errorf("the keys %q started first, the late one waits for a backlog of a thousand", keys)
	}
}

func TestB2_OtherClassesAreAsIfTheyDidNotWait(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	b.Push(&backlog.Entry[int]{}, backlog.Arrival{Tier: 6, Class: 2, Weight: 10}) // too heavy while anything runs
	fillClass(b, 5, "", 1, 1)
	fillClass(b, 2, "", 0, 1)
	if e := b.PeekOf(5, []int{0, 1, 2}); e != nil {
		t.Errorf("an entry of class %d passed the heavy one", e.Class())
	}
	if e := b.PeekOf(5, []int{0, 1}); e == nil || e.Class() != 1 {
		t.Errorf("of the classes 0 and 1, %v is next, want class 1", e)
	}
	if e := b.PeekOf(5, []int{0, 7}); e == nil || e.Class() != 0 {
		t.Errorf("of the classes 0 and 7, %v is next, want class 0", e)
	}
	if e := b.PeekOf(5, nil); e != nil {
		t.Errorf("of no classes, %v is next", e)
	}
	if got, want := b.Closed(5), uint8(0b1111111); got != want {
		t.Errorf("closed tiers %07b, want %07b: arrivals queue whatever their class", got, want)
	}
}

// The guard's turn of a tier with nothing that is taken goes on to others, or a
// class that is never taken would stop the guard for all.
func TestB3_GuardDoesNotWaitForAClassThatIsNotTaken(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10, Caps: [backlog.Tiers]int{1, 1, 10, 10, 10, 10, 10}})
	fillClass(b, 0, "", 1, 1)
	fillClass(b, 1, "", 0, 1)
	for finish := range backlog.Cycle {
		if e := b.PeekOf(5, []int{0}); e != nil {
			if e.Tier() != 1 || finish == 0 {
				t.Fatalf("finish %d: started tier %d", finish, e.Tier())
			}
			return
		}
		b.PassOf(5, []int{0})
	}
	t.Fatal("the guard never came to the tier whose class is taken")
}

// The bound on waiting holds for a class that all callers take, whatever else
// they take and whatever floods the other classes and tiers.
func TestB3_StarvationBoundOfAClass(t *testing.T) {
	takers := [][]int{{1}, {0, 1}, {1, 2}, {0, 1, 2}}
	for phase := range backlog.Cycle {
		for tier := range backlog.Tiers {
			const ahead = 2
			waited := turnsUntilTaken(phase, tier, ahead, takers)
			if bound := backlog.Cycle * (ahead + 1); waited > bound {
				t.Fatalf("turn %d, tier %d: started after %d turns, bound is %d", phase, tier, waited, bound)
			}
		}
	}
}

func turnsUntilTaken(phase, tier, ahead int, takers [][]int) int {
	b := backlog.New[int](backlog.Config{Max: 10, Caps: [backlog.Tiers]int{1, 1, 1, 1, 1, 1, 10}})
	for i := range backlog.Tiers {
		if i != tier {
			fillClass(b, i, "", 0, 200)
			fillClass(b, i, "", 1, 200)
		}
	}
	turn := func(i int) {
		classes := takers[i%len(takers)]
		if e := b.PeekOf(9, classes); e != nil {
			b.Start(e)
			return
		}
		b.PassOf(9, classes)
	}
	for i := range phase {
		turn(i)
	}
	fillClass(b, tier, "", 1, ahead)
	e := &backlog.Entry[int]{Value: -1}
	b.Push(e, backlog.Arrival{Tier: int8(tier), Class: 1, Weight: 1})
	fillClass(b, tier, "", 2, 100) // later, of the same party
	for turns := 1; ; turns++ {
		turn(turns)
		if !e.Queued() {
			return turns
		}
	}
}

func TestWhy_AheadInOtherClasses(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	fillClass(b, 3, "", 0, 20)
	fillClass(b, 3, "", 1, 10)
	e := &backlog.Entry[int]{}
	b.Push(e, backlog.Arrival{Tier: 3, Class: 1, Weight: 1})
	fillClass(b, 3, "", 2, 10)
	fillClass(b, 3, "other", 3, 100)
	// The other key takes turns with the 30 that are older.
	if got := b.Why(e, 0).Ahead[3]; got < 60 || got > 61 {
		t.Errorf("%d ahead, want 30 of its own and 30 of the other key", got)
	}
	e.Value = -1
	p := pieces{}
	for place := range backlog.Scan(b, &p, p.keep).All(0) {
		if got := place.Reasons.Ahead[3]; place.Value == -1 && (got < 60 || got > 61) {
			t.Errorf("a snapshot has %d ahead, want 30 of its own and 30 of the other key", got)
		}
	}
	for turn := range 61 {
		b.Start(b.Peek(0))
		if !e.Queued() {
			t.Logf("started in turn %d", turn)
			return
		}
	}
	t.Error("more entries went ahead than Why said")
}

// A key is remembered until virtual time has passed all that it has been charged for, in
// whichever class that was.
func TestA5_KeyIsRememberedForEachOfItsClasses(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 1})
	fillClass(b, 3, "other", 0, 10)
	var entries [3]backlog.Entry[int]
	var second backlog.Entry[int]
	for i := range entries {
		b.Push(&entries[i], backlog.Arrival{Tier: 3, Key: "k", Weight: 1})
	}
	b.Push(&second, backlog.Arrival{Tier: 3, Key: "k", Class: 1, Weight: 1})
	for i := range entries { // those that are not the last of their queue stay charged
		b.Remove(&entries[i])
	}
	b.Remove(&second) // it was charged for nothing
	for start := range 2 {
		if n := b.Keys().Len(); n != 2 {
			t.Fatalf("after %d starts of another key %d keys are remembered, want 2", start, n)
		}
		take(t, b, 0)
	}
	if n := b.Keys().Len(); n != 1 {
		t.Errorf("%d keys are remembered, want only the one with entries", n)
	}
}
