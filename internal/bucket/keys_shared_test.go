package bucket_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stintgo/stint/internal/bucket"
	"github.com/stintgo/stint/internal/seeded"
)

// admission is n tokens that were had at a time.
type admission struct {
	at, n int64
}

// sharing runs keys, and callers without a key, on one shared bucket.
type sharing struct {
	t      *testing.T
	rng    *rand.Rand
	shared *bucket.Bucket
	keys   *bucket.Keys
	most   int64 // tokens that an entry may ask for
	pause  int64 // most nanoseconds between two operations
	stay   bool  // no waiter gives up
	guard  bool  // the run takes so long that the guard acts
	now    int64

	lastID  int
	entries map[*bucket.Entry]*caller
	waiting []*bucket.Entry
	had     map[string][]admission // by key, and "" of all
	lastOf  map[caller]int         // the last id that was granted, of a key and tier
	lastOp  string
	places  map[caller]int64 // since when a caller waits for the shared bucket
}

type caller struct {
	key      string
	tier, id int
	n        int64
}

// TestB10_KeysOnASharedBucket checks, with random callers of keys and without one, that
// neither a key nor all callers together get more than capacity and rate allow in any
// span of time; that callers of one key and tier are admitted in their order; and that no
// caller waits while both its key and the shared bucket hold its tokens. The run ends
// before the guard acts.
func TestB10_KeysOnASharedBucket(t *testing.T) {
	rng := seeded.Rand(t)
	for range 150 {
		rate, keyRate := float64(int64(1)<<(20+rng.IntN(9))), float64(int64(1)<<(19+rng.IntN(9)))
		capacity, keyCapacity := 1+rng.Int64N(1000), 1+rng.Int64N(1000)
		s := newSharing(t, rng, rate, capacity, keyRate, keyCapacity)
		s.most = min(capacity, keyCapacity)
		for range 300 {
			s.operate()
			s.checkWorkConserving()
		}
		for key, had := range s.had {
			if key == "" {
				checkWindows(t, "all", had, rate, capacity)
			} else {
				checkWindows(t, key, had, keyRate, keyCapacity)
			}
		}
	}
}

// TestB10_KeysLoseNoTokens: when random callers have waited and given up, each key and the
// shared bucket hold exactly what was earned and not had; also when the guard acts.
func TestB10_KeysLoseNoTokens(t *testing.T) {
	rng := seeded.Rand(t)
	for round := range 200 {
		const large = int64(1) << 36
		rate, keyRate := float64(int64(1)<<(20+rng.IntN(9))), float64(int64(1)<<(19+rng.IntN(9)))
		s := newSharing(t, rng, rate, 8*large, keyRate, large)
		s.most = 1000
		if round%2 == 0 {
			rate, keyRate = float64(int64(1)<<(8+rng.IntN(5))), float64(int64(1)<<(7+rng.IntN(5)))
			s = newSharing(t, rng, rate, 8*large, keyRate, large)
			s.guard, s.most, s.pause = true, 200, 1<<30
		}
		for key := range 4 {
			s.keys.Take(0, name(key), large)
		}
		s.shared.Take(0, 4*large)
		for range 300 {
			s.operate()
			s.checkPlacesAreKept()
		}
		for key := range 4 {
			left := int64(keyRate*float64(s.now)/1e9) - sum(s.had[name(key)])
			if got := s.keys.Tokens(s.now, name(key)); got != left {
				t.Fatalf("key %d holds %d tokens, want %d", key, got, left)
			}
		}
		left := int64(rate*float64(s.now)/1e9) - sum(s.had[""])
		if got := s.shared.Tokens(s.now); got != left {
			t.Fatalf("the shared bucket holds %d tokens, want %d", got, left)
		}
	}
}

// TestB10_EarliestOfAKey checks, in random states, that no entry of a key is granted
// before the time that Earliest returned, and that Take fails up to the nanosecond before
// the time that VacantAt returned. If the entry is the only waiter, Earliest is exact.
func TestB10_EarliestOfAKey(t *testing.T) {
	rng := seeded.Rand(t)
	exact := 0
	for round := range 2000 {
		rate, keyRate := float64(int64(1)<<(20+rng.IntN(9))), float64(int64(1)<<(19+rng.IntN(9)))
		s := newSharing(t, rng, rate, 1+rng.Int64N(1000), keyRate, 1+rng.Int64N(1000))
		s.most = 300
		for range rng.IntN(30) {
			s.operate()
		}
		_, capacity := s.shared.Rate()
		key, tier, n := name(rng.IntN(4)), rng.IntN(bucket.Tiers), max(rng.Int64N(700)-100, 0)
		alone := len(s.waiting) == 0 && n <= capacity // more is saved up after the key has saved it
		if round%2 == 0 {
			vacant := s.keys.VacantAt(s.now, key, n)
			if s.stay = true; vacant > s.now && vacant != bucket.Never {
				s.pass(vacant - 1)
				if s.keys.Take(s.now, key, n) {
					t.Fatalf("%d tokens were taken a nanosecond before VacantAt", n)
				}
			}
			continue
		}
		earliest := s.keys.Earliest(s.now, key, tier, n)
		s.stay = true
		e := s.pushTo(key, tier, n)
		s.collect()
		for s.entries[e] != nil {
			s.advance(s.due())
		}
		if s.now < earliest || alone && s.now != earliest {
			t.Fatalf("%d tokens at %d, Earliest is %d, alone %t", n, s.now, earliest, alone)
		}
		if alone && n > 0 {
			exact++
		}
	}
	if exact < 50 {
		t.Errorf("only %d came alone", exact)
	}
}

func sum(had []admission) (n int64) {
	for _, a := range had {
		n += a.n
	}
	return n
}

func checkWindows(t *testing.T, takers string, had []admission, rate float64, capacity int64) {
	t.Helper()
	for i := range had {
		n := int64(0)
		for _, a := range had[i:] {
			n += a.n
			span := float64(a.at - had[i].at)
			if most := capacity + int64(math.Ceil(rate*span/1e9)); n > most {
				t.Fatalf("%s: %d tokens within %.0f ns, at most %d are allowed", takers, n, span, most)
			}
		}
	}
}

func newSharing(
	t *testing.T, rng *rand.Rand, rate float64, capacity int64, keyRate float64, keyCapacity int64,
) *sharing {
	t.Helper()
	s := &sharing{
		t: t, rng: rng, shared: newBucket(rate, capacity), keys: &bucket.Keys{}, pause: 1 << 19,
		entries: map[*bucket.Entry]*caller{}, had: map[string][]admission{}, lastOf: map[caller]int{},
	}
	s.keys.Init(s.shared)
	s.keys.Set(0, keyRate, keyCapacity)
	return s
}

func (s *sharing) operate() {
	key := name(s.rng.IntN(4))
	n := 1 + s.rng.Int64N(s.most)
	s.lastOp = ""
	switch s.rng.IntN(11) {
	case 0, 1:
		s.pass(s.now + s.rng.Int64N(s.pause>>s.rng.IntN(12)))
	case 2:
		s.advance(s.due())
	case 3:
		if s.keys.Take(s.now, key, n) {
			s.note(key, n)
		}
	case 4:
		if s.shared.Take(s.now, n) == bucket.Taken {
			s.note("", n)
		}
	case 5, 6, 7:
		s.push(key, n)
		s.lastOp = "push"
	case 8:
		s.push("", n)
	case 9:
		s.giveUp()
	case 10: // gives up at once, and may have been granted
		s.push(key, n)
		s.remove(len(s.waiting) - 1)
	}
	s.collect()
	for key := range 4 {
		s.keys.Sweep(s.now)
		if s.keys.Tokens(s.now, name(key)) < 0 && !s.guard {
			s.t.Fatal("a key is in debt")
		}
	}
}

func (s *sharing) due() int64 {
	at := int64(math.MaxInt64)
	if due, ok := s.shared.Next(); ok {
		at = due
	}
	if due, ok := s.keys.Next(); ok {
		at = min(at, due)
	}
	if at == math.MaxInt64 {
		return s.now
	}
	return at
}

func (s *sharing) pass(until int64) {
	for {
		due := s.due()
		if due <= s.now || due > until {
			break
		}
		s.advance(due)
	}
	s.advance(until)
}

func (s *sharing) advance(now int64) {
	s.now = now
	s.shared.Advance(now)
	s.keys.Advance(now)
	s.collect()
	if s.now > bucket.GuardAfter/2 && !s.guard {
		s.t.Fatal("the run takes so long that the guard acts")
	}
}

func (s *sharing) push(key string, n int64) { s.pushTo(key, s.rng.IntN(bucket.Tiers), n) }

func (s *sharing) pushTo(key string, tier int, n int64) *bucket.Entry {
	s.lastID++
	e := &bucket.Entry{}
	c := &caller{key: key, tier: tier, id: s.lastID, n: n}
	s.entries[e] = c
	s.waiting = append(s.waiting, e)
	if key == "" {
		s.shared.Push(s.now, e, c.tier, n)
	} else {
		s.keys.Push(s.now, key, e, c.tier, n)
	}
	return e
}

// giveUp has one that waits give up.
func (s *sharing) giveUp() {
	if len(s.waiting) == 0 {
		return
	}
	s.remove(s.rng.IntN(len(s.waiting)))
}

func (s *sharing) remove(i int) {
	e := s.waiting[i]
	c := s.entries[e]
	s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
	delete(s.entries, e)
	if c.key == "" {
		s.shared.Remove(s.now, e)
	} else {
		s.keys.Remove(s.now, c.key, e)
	}
}

func (s *sharing) collect() {
	for e := s.keys.Granted(s.now); e != nil; e = s.keys.Granted(s.now) {
		c := s.entries[e]
		if c == nil {
			s.t.Fatal("an entry that was removed is granted")
		}
		fifo := caller{key: c.key, tier: c.tier}
		if s.lastOf[fifo] > c.id {
			s.t.Fatalf("%+v granted after number %d", c, s.lastOf[fifo])
		}
		s.lastOf[fifo] = c.id
		if !s.stay && s.rng.IntN(8) == 0 { // its context has ended in the same moment
			if c.key == "" {
				s.shared.Remove(s.now, e)
			} else {
				s.keys.Remove(s.now, c.key, e)
			}
		} else {
			s.note(c.key, c.n)
		}
		for i := range s.waiting {
			if s.waiting[i] == e {
				s.waiting = append(s.waiting[:i], s.waiting[i+1:]...)
				break
			}
		}
		delete(s.entries, e)
	}
}

func (s *sharing) note(key string, n int64) {
	s.had[""] = append(s.had[""], admission{s.now, n})
	if key != "" {
		s.had[key] = append(s.had[key], admission{s.now, n})
	}
}

// checkWorkConserving checks that the first waiter of each key whose bucket holds its
// tokens waits for the shared bucket, that no other waiter of the key does, and that the
// shared bucket holds less than its own first waiter needs.
func (s *sharing) checkWorkConserving() {
	s.t.Helper()
	waits := map[string]bucket.Waiting{}
	for i, w := range s.shared.Waiting(s.now) {
		if i == 0 && w.AloneAt <= s.now {
			s.t.Fatalf("the shared bucket holds what its first waiter needs: %+v", w)
		}
		if w.Key == "" {
			continue
		}
		if other, ok := waits[w.Key]; ok {
			s.t.Fatalf("%q waits twice: %+v, %+v", w.Key, w, other)
		}
		waits[w.Key] = w
	}
	all := 0
	for _, q := range s.keys.Queues(s.now) {
		first := q.Waiting[0]
		w, ok := waits[q.Key]
		if has := q.Holds >= first.Need; has != ok || ok && (w.Tier != first.Tier || w.Asked != first.Asked) {
			s.t.Fatalf("%q holds %d tokens, its first waiter is %+v; at the shared bucket %t, %+v", q.Key, q.Holds, first, ok, w)
		}
		all += len(q.Waiting)
	}
	for tier := range bucket.Tiers {
		all -= s.keys.Waiting(tier)
	}
	for _, e := range s.waiting {
		if s.entries[e].key == "" {
			all++
		}
	}
	if all != 0 {
		s.t.Fatalf("the numbers of waiters differ by %d", all)
	}
}

// checkPlacesAreKept checks that at most two entries of a key wait for the shared bucket,
// and that an entry that waits there before and after an operation on its key keeps its
// place, though other entries of the key now precede it.
func (s *sharing) checkPlacesAreKept() {
	s.t.Helper()
	places, twice := map[caller]int64{}, map[string]int{}
	highest := map[string]int{}
	for _, w := range s.shared.Waiting(s.now) {
		if w.Key == "" {
			continue
		}
		if twice[w.Key]++; twice[w.Key] > 2 {
			s.t.Fatalf("%q waits three times", w.Key)
		}
		place := caller{key: w.Key, tier: w.Tier, n: w.Asked}
		places[place] = w.Since
		highest[w.Key] = max(highest[w.Key], w.Tier)
		if was, ok := s.places[place]; ok && was != w.Since && w.Tier < highest[w.Key] && s.lastOp == "push" {
			s.t.Fatalf("%+v that waits since %d has lost its place at %d", place, was, w.Since)
		}
	}
	s.places = places
}
