package bucket_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/bucket"
	"github.com/stintgo/stint/internal/seeded"
)

// pair runs the bucket and the model side by side.
type pair struct {
	t     *testing.T
	rng   *rand.Rand
	real  *bucket.Bucket
	model *model
	step  int
	now   int64

	capacity int64
	entries  map[int]*bucket.Entry
	ids      map[*bucket.Entry]int
	lastID   int
	grants   []grant
	lastOf   [bucket.Tiers]int // the last id granted in a tier
	tierOf   map[int]int
}

// TestB10_ModelExactArithmetic runs random operations on the bucket and on a
// model with exact arithmetic, and compares them after each.
func TestB10_ModelExactArithmetic(t *testing.T) {
	rng := seeded.Rand(t)
	for range 2000 {
		p := newPair(t, rng)
		for p.step = range 500 {
			p.operate()
			p.check()
		}
	}
}

func newPair(t *testing.T, rng *rand.Rand) *pair {
	t.Helper()
	rate, capacity := randomPace(rng), randomCapacity(rng)
	return &pair{
		t: t, rng: rng, capacity: capacity,
		real:    newBucket(rate.perSecond(), capacity),
		model:   newModel(rate, capacity),
		entries: map[int]*bucket.Entry{},
		ids:     map[*bucket.Entry]int{},
		tierOf:  map[int]int{},
	}
}

// randomPace returns a rate from one in 18 minutes to 8 a nanosecond.
func randomPace(rng *rand.Rand) pace {
	return pace{num: 1 + rng.Int64N(1<<(1+rng.IntN(22))), exp: 20 + uint(rng.IntN(21))}
}

func randomCapacity(rng *rand.Rand) int64 { return 1 + rng.Int64N(1<<rng.IntN(24)) }

// operate does one random operation to both.
func (p *pair) operate() {
	switch op := p.rng.IntN(12); op {
	case 0, 1:
		p.pass(p.rng.Int64N(1 << (10 + p.rng.IntN(24))))
	case 2:
		p.passToNext()
	case 3:
		p.late()
	case 4:
		p.take(p.amount() * int64(p.rng.IntN(4))) // also none, and too many
	case 5, 6:
		p.push(p.rng.IntN(bucket.Tiers), p.amount())
	case 7:
		p.push(p.rng.IntN(bucket.Tiers), p.capacity+p.amount())
	case 8:
		p.push(p.rng.IntN(bucket.Tiers), 0)
	case 9, 10:
		p.remove()
	case 11:
		p.set()
	}
}

// amount returns a number of tokens that may fit: a few, or up to the capacity.
func (p *pair) amount() int64 {
	if p.rng.IntN(2) == 0 {
		return min(1+p.rng.Int64N(7), p.capacity)
	}
	return 1 + p.rng.Int64N(p.capacity)
}

// pass lets time go by, and serves what is due at the time at which it is.
func (p *pair) pass(ns int64) {
	until := p.now + ns
	for {
		due, ok := p.real.Next()
		if !ok || due > until {
			break
		}
		p.advance(due)
	}
	p.advance(until)
}

// passToNext lets time go by until something has happened, unless that is
// beyond two years.
func (p *pair) passToNext() {
	if due, ok := p.real.Next(); ok && due < 1<<56 {
		p.advance(due)
	}
}

// late lets time go by to after what is due.
func (p *pair) late() {
	if due, ok := p.real.Next(); ok && due < 1<<56 {
		p.advance(due + p.rng.Int64N(1<<(10+p.rng.IntN(16))))
	}
}

func (p *pair) advance(now int64) {
	if now < p.now {
		p.t.Fatalf("step %d: due at %d, before now, %d", p.step, now, p.now)
	}
	p.now = now
	p.real.Advance(now)
	p.model.pass(now)
	p.collect()
}

func (p *pair) collect() {
	for e := p.real.Granted(); e != nil; e = p.real.Granted() {
		id := p.ids[e]
		p.grants = append(p.grants, grant{id, p.now})
		delete(p.entries, id)
	}
}

func (p *pair) take(n int64) {
	got := p.real.Take(p.now, n) == bucket.Taken
	if want := p.model.take(n); got != want {
		p.t.Fatalf("step %d: take %d: %t, want %t", p.step, n, got, want)
	}
}

func (p *pair) push(tier int, n int64) {
	p.lastID++
	e := &bucket.Entry{}
	p.entries[p.lastID], p.ids[e], p.tierOf[p.lastID] = e, p.lastID, tier
	p.real.Push(p.now, e, tier, n)
	p.model.push(p.lastID, tier, n)
	p.collect()
}

func (p *pair) remove() {
	if len(p.model.waiting) == 0 {
		return
	}
	id := p.model.waiting[p.rng.IntN(len(p.model.waiting))].id
	p.real.Remove(p.now, p.entries[id])
	p.model.remove(id)
	delete(p.entries, id)
	p.collect()
}

func (p *pair) set() {
	rate := p.model.pace
	if p.rng.IntN(2) == 0 {
		rate = randomPace(p.rng)
	} else {
		p.capacity = randomCapacity(p.rng)
	}
	p.real.Freeze()
	if p.real.Take(p.now, 0) != bucket.Changing {
		p.t.Fatalf("step %d: tokens taken during a change of rate", p.step)
	}
	p.real.Set(p.now, rate.perSecond(), p.capacity)
	p.model.set(rate, p.capacity)
	p.collect()
}

// check compares the two, and checks what must hold whatever happened.
func (p *pair) check() {
	p.t.Helper()
	if !slices.Equal(p.grants, p.model.grants) {
		p.t.Fatalf("step %d: granted %v, want %v", p.step, p.grants, p.model.grants)
	}
	for _, g := range p.grants {
		tier := p.tierOf[g.id]
		if g.id < p.lastOf[tier] {
			p.t.Fatalf("step %d: entry %d of tier %d after entry %d", p.step, g.id, tier, p.lastOf[tier])
		}
		p.lastOf[tier] = g.id
	}
	p.grants, p.model.grants = p.grants[:0], p.model.grants[:0]
	if got, want := p.real.Tokens(p.now), p.model.tokens(); got != want {
		p.t.Fatalf("step %d: %d tokens, want %d", p.step, got, want)
	}
	for tier := range bucket.Tiers {
		if got, want := p.real.Queued(tier), p.model.queued(tier); got != want {
			p.t.Fatalf("step %d: %d queued in tier %d, want %d", p.step, got, tier, want)
		}
	}
	due, ok := p.real.Next()
	wantDue, wantOK := p.model.next()
	if ok != wantOK || ok && due != wantDue {
		p.t.Fatalf("step %d: next at %d, %t, want %d, %t", p.step, due, ok, wantDue, wantOK)
	}
	if ok && due <= p.now {
		p.t.Fatalf("step %d: next at %d, which is over at %d", p.step, due, p.now)
	}
}
