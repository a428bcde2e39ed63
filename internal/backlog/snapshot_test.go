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
		names := []string{"", "a", "b", "c"}
		if world%10 == 0 { // more keys than Why looks at
			for i := range 400 {
				names = append(names, strconv.Itoa(i))
			}
		}
		cfg := backlog.Config{
			Max: 1 + rnd.IntN(10), Caps: randomCaps(rnd), PerKey: rnd.IntN(3),
			Share: func(key string) int { return int(key[0]) % 3 },
		}
		b := backlog.New[*backlog.Entry[int]](cfg)
		var queued []*backlog.Entry[*backlog.Entry[int]]
		for range 20 + rnd.IntN(2000) {
			switch name := names[rnd.IntN(len(names))]; rnd.IntN(10) {
			case 0:
				if e := b.Peek(0); e != nil {
					b.Start(e)
					queued = slices.DeleteFunc(queued, func(x *backlog.Entry[*backlog.Entry[int]]) bool { return x == e })
				}
			case 1:
				b.Finish(name)
			case 2:
				if i := rnd.IntN(len(queued) + 1); i < len(queued) {
					b.Remove(queued[i])
					queued = slices.Delete(queued, i, i+1)
				}
			case 3:
				b.Block(name, 1)
			case 4:
				b.Unblock(name, 1)
			default:
				e := new(backlog.Entry[*backlog.Entry[int]])
				b.Push(e, rnd.IntN(3), name, 1+rnd.IntN(3))
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
		b.Push(&entries[i], i%backlog.Tiers, "key "+strconv.Itoa(i%keys), 1)
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
		for place := range snapshot.All(2) {
			if seen[place.Value] {
				t.Fatalf("entry %d is there twice: STINT_SEED=%d", place.Value, first+i)
			}
			seen[place.Value] = true
			if r := place.Reasons; slices.Max(r.Ahead[:]) >= snapshot.Len() || slices.Min(r.Ahead[:]) < 0 {
				t.Fatalf("entry %d of %d has %v ahead: STINT_SEED=%d", place.Value, snapshot.Len(), r.Ahead, first+i)
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
		c.b.PushAged(e, tier, key, class, 1, e.Ticket())
	} else {
		c.b.PushClass(e, tier, key, class, 1)
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
				c.b.Finish(key)
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
