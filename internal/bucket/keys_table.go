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
// and some that have become full since the latest sweep.
//
// With more than fewKeys of them, adding a key looks at two others and drops those that are
// full, so there are at most about twice as many keys as are needed. A sweep, for which the
// owner of the lock needs a timer, drops those that are left when no new keys come.
type table struct {
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

// remember returns known, or a new record for the name if known is nil.
func (k *Keys) remember(known *key, name string) *key {
	if known != nil {
		return known
	}
	t := &k.table
	if t.keys == nil {
		t.keys = map[string]*key{}
	}
	for range 2 {
		if !t.sweeping && len(t.order) > fewKeys {
			t.hand %= len(t.order)
			k.look(k.now)
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
func (k *Keys) look(now int64) {
	t := &k.table
	known := t.order[t.hand]
	if known.queue != nil {
		t.hand++
		return
	}
	if k.curve.earned(now) < known.spent+k.curve.capacity {
		if t.sweeping {
			t.next = min(t.next, k.fullAt(known))
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
func (k *Keys) Sweep(now int64) (more bool) {
	t := &k.table
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
		k.look(now)
	}
	return true
}

// SweepAt returns when [Keys.Sweep] has to be called, or [Never].
func (k *Keys) SweepAt() int64 { return k.table.sweepAt }

// Len returns how many keys are known.
func (k *Keys) Len() int { return len(k.table.order) }
