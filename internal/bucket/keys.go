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
	shared  *Bucket
	curve   *curve // of each key
	limited bool   // else a key's bucket is always full
	now     int64  // of the operation that is under way

	table   table
	due     dueHeap // of keys for which an entry waits
	granted list
	spare   []*keyQueue // at most sparesMax

	waiting [Tiers]int // entries of keys
	claims  [Tiers]int // entries of the shared bucket on behalf of keys
}

// sparesMax bounds what is kept for keys that begin to wait.
const sparesMax = 16

// key is the record of a key.
type key struct {
	name  string
	spent int64     // while queue is nil
	queue *keyQueue // while an entry waits
}

// keyQueue is a key's bucket while an entry waits for it.
type keyQueue struct {
	bucket Bucket
	keys   *Keys
	key    *key
	claims [Tiers]*claim // of the first entry, and of the entry that the guard admits
	due    int64         // when the bucket has to be advanced
	index  int           // in the heap
}

// claim is an entry of the shared bucket on behalf of one of a key's entries.
type claim struct {
	entry  Entry
	queue  *keyQueue
	active bool // it is queued, or granted
	ready  bool // granted
	wanted bool // the key's bucket has asked for it at its latest look
}

// Init makes k the keys of a shared bucket, each without a limit.
func (k *Keys) Init(shared *Bucket) {
	k.shared = shared
	k.curve = keyCurve(0, 0)
	k.table.sweepAt = Never
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

// Set changes the rate and the capacity of each key; a rate of 0 is no limit. The number of
// tokens in a key's bucket stays the same, but those beyond a smaller capacity are lost. A
// key that is full and for which no entry waits is full at the new capacity.
func (k *Keys) Set(now int64, rate float64, capacity int64) {
	k.now = now
	next := keyCurve(rate, capacity)
	next.follow(k.curve, now)
	for _, known := range k.table.order {
		switch {
		case known.queue != nil:
			known.queue.bucket.Advance(now)
			known.queue.bucket.settle(now)
		case rate == 0 || k.fullAt(known) <= now:
			known.spent = 0 // full at any capacity
		}
	}
	k.curve, k.limited = next, rate != 0
	for _, q := range slices.Clone(k.due) {
		q.bucket.adopt(now, next)
		k.settle(q)
	}
	if len(k.table.order) > 0 {
		k.table.sweepAt = now
	}
}

// Rate returns the rate of each key in tokens a second, and its capacity in tokens.
func (k *Keys) Rate() (tokensPerSecond float64, capacity int64) {
	return k.curve.rate, k.curve.capacity
}

// Take takes n ≥ 0 tokens of a key and of the shared bucket if both hold them and no
// entry waits for either.
func (k *Keys) Take(now int64, name string, n int64) bool {
	k.now = now
	known := k.table.keys[name]
	if known != nil && known.queue != nil {
		return false
	}
	spent := k.spent(known)
	if n > 0 && k.curve.earned(now)-spent < n || !k.takeShared(n) {
		return false
	}
	if k.limited && n > 0 {
		k.charge(known, name, spent+n)
	}
	return true
}

// charge records how many tokens a key has spent.
func (k *Keys) charge(known *key, name string, spent int64) {
	fresh := known == nil
	known = k.remember(known, name)
	known.spent = spent
	if fresh { // else it has been noted for an earlier time
		k.table.note(k.fullAt(known))
	}
}

func (k *Keys) takeShared(n int64) bool {
	if k.shared.sourced {
		return k.shared.TakeShared(k.now, n)
	}
	return k.shared.Take(k.now, n) == Taken
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
	k.now = now
	for len(k.due) > 0 && k.due[0].due <= now {
		q := k.due[0]
		q.bucket.Advance(now)
		k.settle(q)
	}
}

// Granted returns the next entry, of a key or of the shared bucket, that has all of its
// tokens, or nil.
func (k *Keys) Granted(now int64) *Entry {
	k.now = now
	for {
		if e := k.granted.pop(); e != nil {
			return e
		}
		e := k.shared.Granted()
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
	k.now = now
	known := k.table.keys[name]
	spent := k.spent(known)
	known = k.remember(known, name)
	if known.queue != nil {
		return known.queue
	}
	var q *keyQueue
	if last := len(k.spare) - 1; last >= 0 {
		q, k.spare[last] = k.spare[last], nil
		k.spare = k.spare[:last]
	} else {
		q = &keyQueue{keys: k}
	}
	q.key, known.queue = known, q
	q.bucket.revive(k.curve, spent, q)
	q.due = Never
	heap.Push(&k.due, q)
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
	for _, c := range q.claims {
		if c != nil && c.active && !c.wanted {
			k.withdraw(c)
		}
	}
	if due, ok := q.bucket.Next(); ok {
		q.due = due
		heap.Fix(&k.due, q.index)
		return
	}
	heap.Remove(&k.due, q.index)
	known := q.key
	known.spent, known.queue, q.key = q.bucket.word.Load()&^flagLocked, nil, nil
	k.table.note(k.fullAt(known))
	if len(k.spare) < sparesMax {
		k.spare = append(k.spare, q)
	}
}

// withdraw removes a claim from the shared bucket's queue and puts back its tokens.
func (k *Keys) withdraw(c *claim) {
	c.active, c.ready = false, false
	k.claims[c.entry.tier]--
	k.shared.Remove(k.now, &c.entry)
}

// spent returns the number of tokens that a key has spent, including those lost by overflow.
// known is nil if the key is not remembered.
func (k *Keys) spent(known *key) int64 {
	if known == nil {
		return k.curve.spill(k.now, 0)
	}
	return k.curve.spill(k.now, known.spent)
}

// fullAt returns when a key that no entry waits for is full.
func (k *Keys) fullAt(known *key) int64 { return k.curve.when(known.spent + k.curve.capacity) }
