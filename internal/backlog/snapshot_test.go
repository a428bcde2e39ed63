package backlog_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
	"github.com/stintgo/stint/internal/seeded"
)

// pieces is the lock of a scan. It counts the entries that are copied each time that
// the lock is held, and has others use the backlog when it is not.
type pieces struct {
	held    bool
	entries int // copied since the lock was taken
	most    int // copied while it was held once
	times   int // that it was taken
	others  func()
}

func (p *pieces) Lock() { p.held, p.entries, p.times = true, 0, p.times+1 }

func (p *pieces) Unlock() {
	p.held, p.most = false, max(p.most, p.entries)
	if p.others != nil {
		p.others()
	}
}

func (p *pieces) keep(e *backlog.Entry[int]) int {
	if !p.held {
		panic("an entry is read without the lock")
	}
	p.entries++
	return e.Value
}

// What a snapshot says of each entry is what Why says of it, in random worlds; the
// entries come in the order of arrival.
func TestModel_SnapshotMatchesWhy(t *testing.T) {
	rnd := rand.New(rand.NewPCG(seeded.Seed(t), 2))
	for world := range 300 {
		names, tiers, steps := []string{"", "a", "b", "c"}, 3, 20+rnd.IntN(2000)
		if world%10 == 0 { // more keys than Why looks at
			tiers, steps = 1, steps+2000
			for i := range 1500 {
				names = append(names, strconv.Itoa(i))
			}
		}
		cfg := backlog.Config{
			Max: 1 + rnd.IntN(10), Caps: randomCaps(rnd), PerKey: rnd.IntN(3),
			Share:     func(key string) int { return int(key[0]) % 3 },
			KeyLimits: map[string]int{"a": rnd.IntN(4)},
		}
		b := backlog.New[*backlog.Entry[int]](cfg)
		var queued []*backlog.Entry[*backlog.Entry[int]]
		for range steps {
			switch name := names[rnd.IntN(len(names))]; rnd.IntN(10) {
			case 0:
				if e := b.Peek(0); e != nil {
					b.Start(e)
					queued = slices.DeleteFunc(queued, func(x *backlog.Entry[*backlog.Entry[int]]) bool { return x == e })
				}
			case 1:
				b.Keys().Finish(name)
			case 2:
				if i := rnd.IntN(len(queued) + 1); i < len(queued) {
					b.Remove(queued[i])
					queued = slices.Delete(queued, i, i+1)
				}
			case 3:
				b.Keys().Block(name, 1)
			case 4:
				b.Keys().Unblock(name, 1)
			default:
				e := new(backlog.Entry[*backlog.Entry[int]])
				b.Push(e, backlog.Arrival{Tier: int8(rnd.IntN(tiers)), Key: name, Weight: 1 + rnd.Int32N(3)})
				queued = append(queued, e)
			}
		}
		running := rnd.IntN(cfg.Max + 1)
		itself := func(e *backlog.Entry[*backlog.Entry[int]]) *backlog.Entry[*backlog.Entry[int]] { return e }
		snapshot := backlog.Scan(b, &pieces{}, itself)
		if snapshot.Len() != len(queued) {
			t.Fatalf("world %d: %d entries, want %d", world, snapshot.Len(), len(queued))
		}
		i := 0
		for p := range snapshot.All(running) {
			if p.Value != queued[i] || p.Tier != queued[i].Tier() {
				t.Fatalf("world %d: place %d has another entry", world, i)
			}
			if want := b.Why(queued[i], running); p.Reasons != want {
				t.Fatalf("world %d: entry %d of %d:\n%+v, want\n%+v", world, i, len(queued), p.Reasons, want)
			}
			i++
		}
	}
}

// Of a long queue no more than PieceMax entries are copied while the lock is held.
func TestScan_HoldsTheLockForBoundedPieces(t *testing.T) {
	const n, keys = 200_000, 10
	b := backlog.New[int](backlog.Config{Max: 1})
	entries := make([]backlog.Entry[int], n)
	for i := range entries {
		entries[i].Value = i
		b.Push(&entries[i], backlog.Arrival{Tier: int8(i % backlog.Tiers), Key: "key " + strconv.Itoa(i%keys), Weight: 1})
	}
	var p pieces
	snapshot := backlog.Scan(b, &p, p.keep)
	if p.most > backlog.PieceMax || p.times < n/backlog.PieceMax {
		t.Errorf("%d entries were copied in one piece of %d, want at most %d", p.most, p.times, backlog.PieceMax)
	}
	i := 0
	for place := range snapshot.All(1) {
		if place.Value != i {
			t.Fatalf("place %d has entry %d", i, place.Value)
		}
		i++
	}
	if i != n {
		t.Errorf("%d entries, want %d", i, n)
	}
}

// While entries arrive, start, leave and are used again between the pieces, those that
// stay are in the snapshot once, and none twice; arrivals do not keep the scan going.
func TestModel_ScanOfAQueueThatChanges(t *testing.T) {
	first := seeded.Seed(t)
	for i := range uint64(60) {
		rnd := rand.New(rand.NewPCG(first+i, 3))
		c := &changing{
			rnd: rnd, b: backlog.New[int](backlog.Config{Max: 3, PerKey: rnd.IntN(3)}), classes: 1 + rnd.IntN(3),
			keys: 1 + rnd.IntN(2)*rnd.IntN(2000), aged: rnd.IntN(2) == 0, bias: rnd.IntN(9),
		}
		for range 200 + rnd.IntN(5000) {
			c.push()
		}
		c.left = func(int) {}
		for range 5 { // so that some have come back
			c.change()
		}
		stay := map[int]bool{}
		for _, e := range c.queued {
			stay[e.Value] = true
		}
		c.left = func(id int) { delete(stay, id) }
		p := pieces{others: c.change}
		snapshot := backlog.Scan(c.b, &p, p.keep)
		if p.most > backlog.PieceMax && !c.aged {
			t.Errorf("%d entries were copied in one piece", p.most)
		}
		seen := map[int]bool{}
		var places []backlog.Place[int]
		var rows [backlog.Tiers]int
		for place := range snapshot.All(2) {
			places = append(places, place)
			rows[place.Tier]++
			if seen[place.Value] {
				t.Fatalf("entry %d is there twice: STINT_SEED=%d", place.Value, first+i)
			}
			seen[place.Value] = true
		}
		for _, place := range places {
			r, tier := place.Reasons, place.Tier
			if !slices.Equal(r.Ahead[tier+1:], rows[tier+1:]) || r.Ahead[tier] >= rows[tier] || slices.Min(r.Ahead[:]) < 0 {
				t.Fatalf("entry %d of tier %d has %v ahead of %v: STINT_SEED=%d", place.Value, tier, r.Ahead, rows, first+i)
			}
		}
		for id := range stay {
			if !seen[id] {
				t.Fatalf("entry %d was queued all the time and is missing: STINT_SEED=%d", id, first+i)
			}
		}
	}
}

// changing is a backlog that others use during a scan.
type changing struct {
	rnd     *rand.Rand
	b       *backlog.Backlog[int]
	classes int
	keys    int
	aged    bool // entries come back with their tickets
	bias    int  // of ten changes, about this many are departures
	lastID  int
	queued  []*backlog.Entry[int]
	unused  []*backlog.Entry[int]
	left    func(id int)
}

func (c *changing) push() {
	e := new(backlog.Entry[int])
	if n := len(c.unused); n > 0 && c.rnd.IntN(2) == 0 {
		e, c.unused = c.unused[n-1], c.unused[:n-1]
	}
	c.lastID++
	e.Value = c.lastID
	tier, key, class := c.rnd.IntN(3), "", c.rnd.IntN(c.classes)
	if k := c.rnd.IntN(c.keys); k > 0 {
		key = strconv.Itoa(k)
	}
	if c.aged && e.Ticket() > 0 {
		c.b.PushAt(e, backlog.Arrival{Tier: int8(tier), Key: key, Class: int32(class), Weight: 1}, e.Ticket())
	} else {
		c.b.Push(e, backlog.Arrival{Tier: int8(tier), Key: key, Class: int32(class), Weight: 1})
	}
	c.queued = append(c.queued, e)
}

func (c *changing) leave(e *backlog.Entry[int]) {
	c.queued = slices.DeleteFunc(c.queued, func(x *backlog.Entry[int]) bool { return x == e })
	c.unused = append(c.unused, e)
	c.left(e.Value)
}

func (c *changing) change() {
	for range c.rnd.IntN(400) {
		switch n := c.rnd.IntN(10); {
		case n >= c.bias:
			c.push()
		case n == 0:
			if e := c.b.Peek(0); e != nil {
				key := e.Key()
				c.b.Start(e)
				c.b.Keys().Finish(key)
				c.leave(e)
			}
		case len(c.queued) > 0: // the youngest often, as when a context ends
			i := len(c.queued) - 1
			if c.rnd.IntN(3) == 0 {
				i = c.rnd.IntN(len(c.queued))
			}
			e := c.queued[i]
			c.b.Remove(e)
			c.leave(e)
		}
	}
}

// At each pause of a scan the entry copied last leaves and is queued again: older than
// the others of its queue, younger, or in another queue. The scan goes on behind the place
// that it had.
func TestScan_EntryCopiedLastIsQueuedAgain(t *testing.T) {
	const n = 4 * backlog.PieceMax
	for name, again := range map[string]func(b *backlog.Backlog[int], e *backlog.Entry[int]){
		"older": func(b *backlog.Backlog[int], e *backlog.Entry[int]) {
			b.PushAt(e, backlog.Arrival{Tier: 3, Weight: 1}, e.Ticket())
		},
		"younger": func(b *backlog.Backlog[int], e *backlog.Entry[int]) { b.Push(e, backlog.Arrival{Tier: 3, Weight: 1}) },
		"another tier": func(b *backlog.Backlog[int], e *backlog.Entry[int]) {
			b.PushAt(e, backlog.Arrival{Tier: 1, Weight: 1}, e.Ticket())
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := backlog.New[int](backlog.Config{Max: 1})
			entries := make([]backlog.Entry[int], n)
			for i := range entries {
				entries[i].Value = i
				b.Push(&entries[i], backlog.Arrival{Tier: 3, Weight: 1})
			}
			var copied *backlog.Entry[int]
			moved := map[int]bool{}
			p := pieces{others: func() {
				if copied != nil && !moved[copied.Value] {
					moved[copied.Value] = true
					b.Remove(copied)
					again(b, copied)
				}
			}}
			snapshot := backlog.Scan(b, &p, func(e *backlog.Entry[int]) int {
				copied = e
				return p.keep(e)
			})
			seen := map[int]int{}
			for place := range snapshot.All(1) {
				seen[place.Value]++
			}
			for i := range n {
				if seen[i] > 1 || seen[i] == 0 && !moved[i] {
					t.Fatalf("entry %d is in the snapshot %d times, want once", i, seen[i])
				}
			}
			if len(moved) < 3 {
				t.Errorf("%d entries were queued again, want one at each pause", len(moved))
			}
		})
	}
}

// A scan ends although more arrives at each pause than it copies in one piece.
func TestScan_ArrivalsDoNotKeepItGoing(t *testing.T) {
	const n, most = 4 * backlog.PieceMax, 10
	b := backlog.New[int](backlog.Config{Max: 1})
	fill(b, 3, "", n)
	var p pieces
	p.others = func() {
		if p.times < 10*most {
			fill(b, 3, "", 2*backlog.PieceMax)
		}
	}
	snapshot := backlog.Scan(b, &p, p.keep)
	if p.times > most || snapshot.Len() > n+2*backlog.PieceMax {
		t.Errorf("the lock was taken %d times, and %d entries were copied of %d", p.times, snapshot.Len(), n)
	}
}

// A queue that is forgotten at a pause, while the scan looks for the place to go on, is
// not taken for the one that its key has in another tier then.
func TestScan_KeyMovesToAnotherTier(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	entries := make([]backlog.Entry[int], 2*backlog.PieceMax+10)
	for i := range entries {
		entries[i].Value = i
		b.Push(&entries[i], backlog.Arrival{Tier: 1, Key: "k", Weight: 1})
	}
	b.Keys().Admit("k") // so that the key is remembered
	copied, left := 0, 0
	p := pieces{others: func() {
		switch {
		case left == 0 && copied > backlog.PieceMax: // then the scan looks through all that it has copied
			left = copied
			for i := range left {
				b.Remove(&entries[i])
			}
		case left > 0 && b.LenTier(1) > 0:
			for i := range entries[left:] {
				b.Remove(&entries[left+i])
			}
			for i := range entries[left:] {
				e := &entries[left+i]
				b.PushAt(e, backlog.Arrival{Tier: 5, Key: "k", Weight: 1}, e.Ticket())
			}
		}
	}}
	snapshot := backlog.Scan(b, &p, func(e *backlog.Entry[int]) int {
		copied++
		return p.keep(e)
	})
	if b.LenTier(1) > 0 || b.LenTier(5) == 0 {
		t.Fatalf("%d entries are left, and %d have moved: the scan paused too seldom", b.LenTier(1), b.LenTier(5))
	}
	seen := map[int]bool{}
	for place := range snapshot.All(1) {
		if seen[place.Value] {
			t.Fatalf("entry %d is in the snapshot twice", place.Value)
		}
		seen[place.Value] = true
	}
}

// A snapshot has the pieces of a run as Why explains them, and holds the lock for bounded
// pieces of it.
func TestScan_Run(t *testing.T) {
	const n = 3*backlog.PieceMax + 10
	b := backlog.New[int](backlog.Config{Max: 10})
	var run backlog.Run[int]
	left := n
	run.PushTo(b, backlog.Arrival{Tier: 3, Weight: 1}, 1, &left)
	var keyed [20]backlog.Entry[int]
	for i := range keyed {
		keyed[i].Value = n + i
		b.PushAt(&keyed[i], backlog.Arrival{Tier: 3, Key: "k", Weight: 1}, uint64(n+1+i))
	}
	lower := &backlog.Entry[int]{Value: n + len(keyed)}
	b.PushAt(lower, backlog.Arrival{Tier: 2, Weight: 1}, n+100)
	var p pieces
	snapshot := backlog.ScanRuns(b, &p, p.keep, func(e *backlog.Entry[int], at uint64) (backlog.Piece[int], bool) {
		if e != &run.Entry || at >= n {
			return backlog.Piece[int]{}, false
		}
		p.keep(e)
		return backlog.Piece[int]{Value: int(at), Weight: 1, Ticket: at + 1, Next: at + 1}, true
	})
	if p.most > backlog.PieceMax {
		t.Errorf("%d pieces were copied while the lock was held once, want at most %d", p.most, backlog.PieceMax)
	}
	place := 0
	for got := range snapshot.All(0) {
		var want backlog.Reasons
		switch {
		case place < n:
			want = run.Why(place, 1, 0)
		case place < n+len(keyed):
			want = b.Why(&keyed[place-n], 0)
		default:
			want = b.Why(lower, 0)
		}
		if got.Value != place || got.Reasons != want {
			t.Fatalf("place %d is of entry %d:\n%+v, want\n%+v", place, got.Value, got.Reasons, want)
		}
		place++
	}
	if place != b.Len() {
		t.Errorf("%d entries are in the snapshot, want %d", place, b.Len())
	}
}

// A run that ends while a scan pauses is copied as far as the scan has come.
func TestScan_RunEnds(t *testing.T) {
	b := backlog.New[int](backlog.Config{Max: 10})
	var run backlog.Run[int]
	left := 2 * backlog.PieceMax
	run.PushTo(b, backlog.Arrival{Tier: 3, Weight: 1}, 1, &left)
	fill(b, 2, "k", 1)
	p := pieces{}
	p.others = func() {
		if p.times == 2 {
			left = 0
			b.Remove(&run.Entry)
		}
	}
	snapshot := backlog.ScanRuns(b, &p, p.keep, func(e *backlog.Entry[int], at uint64) (backlog.Piece[int], bool) {
		if !e.Queued() {
			t.Error("the scan asks for a piece of a run that has ended")
		}
		return backlog.Piece[int]{Weight: 1, Ticket: at + 1, Next: at + 1}, true
	})
	if got := snapshot.Len(); got != backlog.PieceMax+1 {
		t.Errorf("%d entries are in the snapshot, want one piece of the run and one entry", got)
	}
}

// Keys that have no entries take steps of a scan, too.
func TestScan_PausesBetweenKeysWithoutEntries(t *testing.T) {
	const keys = 10 * backlog.PieceMax
	b := backlog.New[int](backlog.Config{Max: 1})
	for i := range keys {
		b.Keys().Admit(strconv.Itoa(i))
	}
	var p pieces
	if snapshot := backlog.Scan(b, &p, p.keep); snapshot.Len() != 0 || p.times < keys/backlog.PieceMax {
		t.Errorf("%d entries; the lock was taken %d times for %d keys, want once for %d of them",
			snapshot.Len(), p.times, keys, backlog.PieceMax)
	}
}
