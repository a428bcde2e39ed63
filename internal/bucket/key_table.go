package bucket

import "github.com/stintgo/stint/internal/shrink"

const (
	// sweepEvery is the shortest time between two sweeps, in nanoseconds, and sweepPace
	// the time for each key that there is, so that sweeps take a small part of a
	// processor however many keys there are.
	sweepEvery = second
	sweepPace  = 4_000

	// sweepPiece is how many keys [Keys.Sweep] looks at in one call.
	sweepPiece = 256

	// fewKeys is up to how many keys only sweeps drop those that are full. Most keys that
	// are used again and again are full each time, and would be dropped and added each time.
	fewKeys = 1024
)

// table has the keys that are known: those that are not full or have waiters,
// and some that have become full since the latest sweep. A key that is not known is full.
//
// With more than fewKeys of them, adding a key looks at two others and drops those that are
// full, so there are at most about twice as many keys as are needed. A sweep, for which the
// owner of the lock needs a timer, drops those that are left when no new keys come.
type table struct {
	curve   *curve // of each key
	limited bool   // else a key is always full

	keys  map[string]*key
	peak  int // see shrink.Delete
	order []*key
	hand  int  // the place in order of the one to look at next
	spare *key // the latest that was dropped, or nil

	sweepAt  int64 // when a sweep is due, or Never
	sweptAt  int64 // when the latest began
	sweeping bool
	next     int64 // of the keys that the sweep has kept, when the first will be full
}

// key is the record of a key.
type key struct {
	name  string
	spent int64     // while queue is nil
	queue *keyQueue // while an entry waits
}

// fullAt returns when a key that no entry waits for is full.
func (t *table) fullAt(known *key) int64 { return t.curve.when(known.spent + t.curve.capacity) }

// spent returns the number of tokens that a key has spent for which no entry waits,
// including those lost by overflow. known is nil if the key is not known.
func (t *table) spent(now int64, known *key) int64 {
	if known == nil {
		return t.curve.spill(now, 0)
	}
	return t.curve.spill(now, known.spent)
}

// holds returns the tokens of such a key: negative in debt.
func (t *table) holds(now int64, known *key) int64 { return t.curve.earned(now) - t.spent(now, known) }

// freeAt returns when such a key will hold n tokens. A debt is no obstacle to taking none.
func (t *table) freeAt(now int64, known *key, n int64) int64 {
	if n == 0 {
		return now
	}
	return max(t.curve.when(t.spent(now, known)+min(n, maxTokens)), now)
}

// take counts n ≥ 1 tokens that such a key has spent.
func (t *table) take(now int64, known *key, name string, n int64) {
	spent := t.spent(now, known) + n
	fresh := known == nil
	known = t.remember(now, known, name)
	known.spent = spent
	if fresh { // else it has a note for an earlier time
		t.note(t.fullAt(known))
	}
}

// set changes the curve of all keys. One that is full is full at any capacity.
func (t *table) set(now int64, next *curve, limited bool) {
	for _, known := range t.order {
		if known.queue == nil && (!limited || t.fullAt(known) <= now) {
			known.spent = 0
		}
	}
	t.curve, t.limited = next, limited
	if len(t.order) > 0 {
		t.sweepAt = now
	}
}

// Rate returns the rate of each key in tokens a second, and its capacity in tokens.
func (t *table) Rate() (tokensPerSecond float64, capacity int64) {
	return t.curve.rate, t.curve.capacity
}

// Len returns how many keys are known.
func (t *table) Len() int { return len(t.order) }

// remember returns known, or a new record for the name if known is nil.
func (t *table) remember(now int64, known *key, name string) *key {
	if known != nil {
		return known
	}
	if t.keys == nil {
		t.keys = map[string]*key{}
	}
	for range 2 {
		if !t.sweeping && len(t.order) > fewKeys {
			t.hand %= len(t.order)
			t.look(now)
		}
	}
	if known, t.spare = t.spare, nil; known == nil {
		known = new(key)
	}
	known.name = name
	t.keys[name] = known
	t.order = append(t.order, known)
	return known
}

// look drops the key at the hand if it is full and no entry waits for it, or moves the
// hand on.
func (t *table) look(now int64) {
	known := t.order[t.hand]
	if known.queue != nil {
		t.hand++
		return
	}
	if t.curve.earned(now) < known.spent+t.curve.capacity {
		if t.sweeping {
			t.next = min(t.next, t.fullAt(known))
		}
		t.hand++
		return
	}
	t.order[t.hand] = t.order[len(t.order)-1]
	t.order = shrink.Pop(t.order)
	shrink.Delete(&t.keys, &t.peak, known.name)
	*known = key{}
	t.spare = known
}

// note makes a sweep due when a key will be full, or at the first time after that at which
// a sweep is allowed.
func (t *table) note(full int64) {
	t.sweepAt = min(t.sweepAt, max(full, t.sweptAt+t.pause()))
}

// pause returns the time from the beginning of a sweep to that of the next.
func (t *table) pause() int64 { return max(sweepEvery, int64(len(t.order))*sweepPace) }

// Sweep begins to drop the keys that are full, or continues to do so, and reports whether it
// must be called again. The caller may release the lock before the next call.
func (t *table) Sweep(now int64) (more bool) {
	if !t.sweeping {
		t.sweeping, t.hand, t.sweptAt, t.sweepAt, t.next = true, 0, now, Never, Never
	}
	for range sweepPiece {
		if t.hand >= len(t.order) {
			t.sweeping = false
			if t.next != Never {
				t.note(t.next)
			}
			return false
		}
		t.look(now)
	}
	return true
}

// SweepAt returns when [Keys.Sweep] has to be called, or [Never].
func (t *table) SweepAt() int64 { return t.sweepAt }
