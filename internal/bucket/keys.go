package bucket

import (
	"container/heap"
	"slices"
)

// Keys gives each key a bucket of its own, all of one rate and capacity, before the one
// bucket that they share. When a key's bucket has the tokens for the key's first entry, that
// entry joins the queue of the shared bucket, at the end of its tier, and it is admitted when
// both buckets have its tokens. So a key that has used up its rate delays no other key, and
// keys that wait for the shared bucket take turns.
//
// Only keys that are not full are remembered: a key that is not known has a full bucket.
// While no entry waits for a key, its bucket is one number, the count of tokens spent; it
// has a [Bucket] from when an entry begins to wait until none does.
//
// All methods need the lock of the shared bucket, and times that never run backwards.
// The shared bucket is used by others as well; the entries that it grants come out of
// [Keys.Granted].
type Keys struct {
	table
	shared  overall
	due     dueHeap // of keys for which an entry waits
	granted list
	spare   []*keyQueue // at most sparesMax
	waiting [Tiers]int  // entries of keys
}

// sparesMax bounds what is kept for keys that begin to wait.
const sparesMax = 16

// Init makes k the keys of a shared bucket, each without a limit.
func (k *Keys) Init(shared *Bucket) {
	k.shared.bucket = shared
	k.curve = keyCurve(0, 0)
	k.sweepAt = Never
}

// keyCurve returns the curve of a key's bucket, with a rate of 0 for no limit. Its tokens
// begin where those of the largest bucket end, so that a bucket of any capacity that is
// full has spent no negative number of tokens.
func keyCurve(rate float64, capacity int64) *curve {
	if rate == 0 {
		rate, capacity = MaxRate, MaxCapacity
	}
	l := newCurve(rate, capacity)
	l.base = MaxCapacity
	return l
}

// Set changes the rate and the capacity of each key; a rate of 0 means no limit. The number of
// tokens in a key's bucket stays the same, but those beyond a smaller capacity are lost. A
// key that is full and for which no entry waits is full at the new capacity.
func (k *Keys) Set(now int64, rate float64, capacity int64) {
	k.shared.now = now
	next := keyCurve(rate, capacity)
	next.follow(k.curve, now)
	for _, q := range k.due {
		q.bucket.Advance(now)
		q.bucket.settle(now)
	}
	k.set(now, next, rate != 0)
	for _, q := range slices.Clone(k.due) {
		q.bucket.adopt(now, next)
		k.settle(q)
	}
}

// Take takes n ≥ 0 tokens of a key and of the shared bucket if both hold them and no
// entry waits for either.
func (k *Keys) Take(now int64, name string, n int64) bool {
	k.shared.now = now
	known := k.keys[name]
	if known != nil && known.queue != nil {
		return false
	}
	if n > 0 && k.holds(now, known) < n || !k.shared.take(n) {
		return false
	}
	if k.limited && n > 0 {
		k.take(now, known, name, n)
	}
	return true
}

// Push queues e for n ≥ 0 tokens at the end of tier t of a key. It may be granted at once,
// see [Keys.Granted].
func (k *Keys) Push(now int64, name string, e *Entry, t int, n int64) {
	q := k.open(now, name)
	k.waiting[t]++
	q.bucket.Push(now, e, t, n)
	k.settle(q)
}

// Remove removes e from a key's queue, as [Bucket.Remove] does.
func (k *Keys) Remove(now int64, name string, e *Entry) {
	switch e.in {
	case nil: // it has been collected
	case &k.granted:
		k.granted.remove(e)
	default:
		k.waiting[e.tier]--
	}
	q := k.open(now, name)
	q.bucket.Remove(now, e)
	k.settle(q)
}

// Advance grants what can be granted by now to entries that wait for keys. The shared
// bucket has to be advanced for itself.
func (k *Keys) Advance(now int64) {
	k.shared.now = now
	for len(k.due) > 0 && k.due[0].due <= now {
		q := k.due[0]
		q.bucket.Advance(now)
		k.settle(q)
	}
}

// Granted returns the next entry, of a key or of the shared bucket, that has all of its
// tokens, or nil.
func (k *Keys) Granted(now int64) *Entry {
	k.shared.now = now
	for {
		if e := k.granted.pop(); e != nil {
			return e
		}
		e := k.shared.bucket.Granted()
		if e == nil || e.claim == nil {
			return e
		}
		e.claim.ready = true
		q := e.claim.queue
		q.bucket.Advance(now)
		k.settle(q)
	}
}

// Next returns when [Keys.Advance] has to be called next, if nothing else happens before,
// and whether an entry waits for a key.
func (k *Keys) Next() (due int64, ok bool) {
	if len(k.due) == 0 {
		return Never, false
	}
	return k.due[0].due, true
}

// open returns the queue of a key.
func (k *Keys) open(now int64, name string) *keyQueue {
	k.shared.now = now
	known := k.keys[name]
	if known != nil && known.queue != nil {
		return known.queue
	}
	spent := k.spent(now, known)
	q := k.unused()
	q.open(k.remember(now, known, name), k.curve, spent)
	heap.Push(&k.due, q)
	return q
}

// unused returns a queue that no key has.
func (k *Keys) unused() *keyQueue {
	last := len(k.spare) - 1
	if last < 0 {
		return newKeyQueue(&k.shared)
	}
	q := k.spare[last]
	k.spare[last] = nil
	k.spare = k.spare[:last]
	return q
}

// settle must follow every operation on a key's bucket. It takes over the granted entries,
// withdraws the claims that are not wanted any more, and closes the queue if no entry
// waits.
func (k *Keys) settle(q *keyQueue) {
	for e := q.bucket.Granted(); e != nil; e = q.bucket.Granted() {
		k.waiting[e.tier]--
		k.granted.push(e)
	}
	q.withdrawUnwanted()
	if due, ok := q.bucket.Next(); ok {
		q.due = due
		heap.Fix(&k.due, q.index)
		return
	}
	heap.Remove(&k.due, q.index)
	k.note(k.fullAt(q.close()))
	if len(k.spare) < sparesMax {
		k.spare = append(k.spare, q)
	}
}
