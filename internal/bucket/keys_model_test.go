package bucket_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stintgo/stint/internal/bucket"
	"github.com/stintgo/stint/internal/seeded"
)

// keyed runs keys that share a bucket without a limit beside the exact model of each.
type keyed struct {
	t        *testing.T
	rng      *rand.Rand
	keys     *bucket.Keys
	models   []*model
	now      int64
	step     int
	capacity int64

	crowd   bool // there are many other keys
	others  int
	lastID  int
	entries map[int]*bucket.Entry
	keyOf   map[*bucket.Entry]int
	ids     map[*bucket.Entry]int
	grants  [][]grant
}

// TestB10_KeysModelExactArithmetic runs random operations on keys, and on a map of exact
// buckets with exact arithmetic, one for each key that is never forgotten. After each the
// keys must hold and have granted the same; and after a sweep no key is known that is full.
// In each fourth run there are so many other keys that full ones are dropped between sweeps.
func TestB10_KeysModelExactArithmetic(t *testing.T) {
	rng := seeded.Rand(t)
	for run := range 200 {
		m := newKeyed(t, rng)
		m.crowd = run%4 == 0
		for m.step = range 500 {
			m.join()
			m.operate()
			m.check()
		}
	}
}

func newKeyed(t *testing.T, rng *rand.Rand) *keyed {
	t.Helper()
	m := &keyed{
		t: t, rng: rng, keys: &bucket.Keys{}, capacity: randomCapacity(rng),
		entries: map[int]*bucket.Entry{}, keyOf: map[*bucket.Entry]int{}, ids: map[*bucket.Entry]int{},
		grants: make([][]grant, 5),
	}
	m.keys.Init(newBucket(bucket.MaxRate, bucket.MaxCapacity))
	rate := randomPace(rng)
	m.keys.Set(0, rate.perSecond(), m.capacity)
	for range m.grants {
		model := newModel(rate, m.capacity)
		model.strict = true
		m.models = append(m.models, model)
	}
	return m
}

// join takes a token of other keys, until there are many.
func (m *keyed) join() {
	most := m.others + 1100
	for more := m.crowd; more; more = m.keys.Len() < 1100 && m.others < most {
		m.keys.Take(m.now, fmt.Sprint("other ", m.others), 1)
		m.others++
	}
}

func name(key int) string { return fmt.Sprint("key ", key) }

func (m *keyed) operate() {
	key := m.rng.IntN(len(m.models))
	switch m.rng.IntN(12) {
	case 0, 1:
		m.pass(m.now + m.rng.Int64N(1<<(10+m.rng.IntN(24))))
	case 2:
		if due, ok := m.keys.Next(); ok && due < 1<<56 {
			m.advance(due)
		}
	case 3:
		if due, ok := m.keys.Next(); ok && due < 1<<56 { // late
			m.advance(due + m.rng.Int64N(1<<(10+m.rng.IntN(16))))
		}
	case 4, 5:
		n := m.amount() * int64(m.rng.IntN(4))
		if got, want := m.keys.Take(m.now, name(key), n), m.models[key].take(n); got != want {
			m.t.Fatalf("step %d: take %d of %d: %t, want %t", m.step, n, key, got, want)
		}
	case 6, 7:
		m.push(key, m.amount())
	case 8:
		m.push(key, m.capacity+m.amount())
	case 9:
		m.push(key, 0)
	case 10:
		m.remove(key)
	case 11:
		m.setOrSweep()
	}
	m.collect()
}

func (m *keyed) amount() int64 {
	if m.rng.IntN(2) == 0 {
		return min(1+m.rng.Int64N(7), m.capacity)
	}
	return 1 + m.rng.Int64N(m.capacity)
}

// pass lets time go by, and serves what is due at the time at which it is.
func (m *keyed) pass(until int64) {
	for due, ok := m.keys.Next(); ok && due <= until; due, ok = m.keys.Next() {
		m.advance(due)
	}
	m.advance(until)
}

func (m *keyed) advance(now int64) {
	if now < m.now {
		m.t.Fatalf("step %d: due at %d, before now, %d", m.step, now, m.now)
	}
	m.now = now
	m.keys.Advance(now)
	for _, model := range m.models {
		model.pass(now)
	}
	m.collect()
}

func (m *keyed) collect() {
	for e := m.keys.Granted(m.now); e != nil; e = m.keys.Granted(m.now) {
		key, id := m.keyOf[e], m.ids[e]
		m.grants[key] = append(m.grants[key], grant{id, m.now})
		delete(m.entries, id)
	}
}

func (m *keyed) push(key int, n int64) {
	m.lastID++
	e, tier := &bucket.Entry{}, m.rng.IntN(bucket.Tiers)
	m.entries[m.lastID], m.ids[e], m.keyOf[e] = e, m.lastID, key
	m.keys.Push(m.now, name(key), e, tier, n)
	m.models[key].push(m.lastID, tier, n)
}

func (m *keyed) remove(key int) {
	waiting := m.models[key].waiting
	if len(waiting) == 0 {
		return
	}
	id := waiting[m.rng.IntN(len(waiting))].id
	m.keys.Remove(m.now, name(key), m.entries[id])
	m.models[key].remove(id)
	delete(m.entries, id)
}

func (m *keyed) setOrSweep() {
	if m.rng.IntN(2) == 0 {
		for m.keys.Sweep(m.now) {
		}
		needed := 0
		for _, model := range m.models {
			if len(model.waiting) > 0 || model.tokens() < m.capacity {
				needed++
			}
		}
		if got := m.keys.Len(); got < needed || got > needed && !m.crowd {
			m.t.Fatalf("step %d: %d keys are known after a sweep, %d are not full", m.step, got, needed)
		}
		return
	}
	rate := m.models[0].pace
	if m.rng.IntN(2) == 0 {
		rate = randomPace(m.rng)
	}
	old := m.capacity
	if m.rng.IntN(2) == 0 {
		m.capacity = randomCapacity(m.rng)
	}
	m.keys.Set(m.now, rate.perSecond(), m.capacity)
	for _, model := range m.models {
		full := len(model.waiting) == 0 && model.tokens() == old
		model.set(rate, m.capacity)
		if full {
			model.spent = model.earned(m.now) - m.capacity
		}
	}
}

func (m *keyed) check() {
	m.t.Helper()
	earliest, waits := int64(math.MaxInt64), false
	for key, model := range m.models {
		if !slices.Equal(m.grants[key], model.grants) {
			m.t.Fatalf("step %d: key %d granted %v, want %v", m.step, key, m.grants[key], model.grants)
		}
		m.grants[key], model.grants = m.grants[key][:0], model.grants[:0]
		if got, want := m.keys.Tokens(m.now, name(key)), model.tokens(); got != want {
			m.t.Fatalf("step %d: key %d holds %d tokens, want %d", m.step, key, got, want)
		}
		for tier := range bucket.Tiers {
			if got, want := m.keys.Queued(name(key), tier), model.queued(tier); got != want {
				m.t.Fatalf("step %d: %d queued in tier %d of key %d, want %d", m.step, got, tier, key, want)
			}
		}
		if due, ok := model.next(); ok {
			earliest, waits = min(earliest, due), true
		}
	}
	if due, ok := m.keys.Next(); ok != waits || ok && due != earliest {
		m.t.Fatalf("step %d: next at %d, %t, want %d, %t", m.step, due, ok, earliest, waits)
	}
	for tier := range bucket.Tiers {
		want := 0
		for _, model := range m.models {
			want += model.queued(tier)
		}
		if got := m.keys.Waiting(tier); got != want {
			m.t.Fatalf("step %d: %d wait in tier %d of all keys, want %d", m.step, got, tier, want)
		}
	}
}
