package bucket

import "github.com/stintgo/stint/internal/shrink"

var _ Source = (*keyQueue)(nil)

// keyQueue is a key's bucket while an entry waits for it. The shared bucket is its source:
// the first entry of the key, and the one that the key's guard admits, claim their tokens
// there.
type keyQueue struct {
	bucket Bucket
	shared *overall
	key    *key
	claims [Tiers]*claim
	due    int64 // when the bucket has to be advanced
	index  int   // in the heap
}

// claim is an entry of the shared bucket on behalf of one of a key's entries.
type claim struct {
	entry  Entry
	queue  *keyQueue
	active bool // it is queued, or granted
	ready  bool // granted
	wanted bool // the key's bucket has asked for it at its latest look
}

// overall is the shared bucket as the buckets of keys see it.
type overall struct {
	bucket *Bucket
	now    int64      // of the operation that is under way
	claims [Tiers]int // the number that are active
}

// take takes n tokens if the shared bucket holds them and no entry waits for it.
func (o *overall) take(n int64) bool {
	if o.bucket.sourced {
		return o.bucket.TakeShared(o.now, n)
	}
	return o.bucket.Take(o.now, n) == Taken
}

// file queues c for n tokens at the end of a tier. It may be ready at once.
func (o *overall) file(c *claim, t int, n int64) {
	c.active = true
	o.claims[t]++
	o.bucket.Push(o.now, &c.entry, t, n)
	if c.entry.in == &o.bucket.granted {
		o.bucket.granted.remove(&c.entry)
		c.ready = true
	}
}

// end makes c inactive, which keeps its tokens.
func (o *overall) end(c *claim) {
	c.active, c.ready = false, false
	o.claims[c.entry.tier]--
}

// withdraw ends c and puts back its tokens.
func (o *overall) withdraw(c *claim) {
	o.end(c)
	o.bucket.Remove(o.now, &c.entry)
}

func newKeyQueue(shared *overall) *keyQueue {
	q := &keyQueue{shared: shared}
	q.bucket.keyed = true
	q.bucket.Share(q)
	return q
}

// open makes q the queue of a key that has spent some tokens. q may have been the queue of
// another key, whose entries have all left.
func (q *keyQueue) open(known *key, at *curve, spent int64) {
	q.key, known.queue = known, q
	q.bucket.open(at, spent)
	q.due = Never
}

// close ends the use of q, when no entry waits, and leaves the tokens spent with the key.
func (q *keyQueue) close() *key {
	known := q.key
	known.spent, known.queue, q.key = q.bucket.word.Load()&^flagLocked, nil, nil
	return known
}

// Rivals begins a look of the key's bucket at what it can grant. It has no rivals: the shared
// bucket decides which key goes first there.
func (q *keyQueue) Rivals() (t int, debt int64) {
	for _, c := range q.claims {
		if c != nil {
			c.wanted = false
		}
	}
	return -1, 0
}

// Draw takes n tokens of the shared bucket for an entry of tier t, or queues a claim for
// them: the key's bucket is advanced when the claim is granted. An entry that the key's
// guard admits into debt takes no debt of the shared bucket, which has a guard of its own.
func (q *keyQueue) Draw(t int, n int64, _ bool) (drawn, again int64, err error) {
	c := q.claimFor(t, n)
	c.wanted = true
	if !c.active {
		if q.shared.bucket.Take(q.shared.now, n) == Taken {
			return n, 0, nil
		}
		q.shared.file(c, t, n)
	}
	if !c.ready {
		return 0, Never, nil
	}
	q.shared.end(c)
	if err := c.entry.Err; err != nil {
		return 0, 0, err
	}
	return n, 0, nil
}

// claimFor returns the claim of tier t, which is not active unless it is for n tokens.
func (q *keyQueue) claimFor(t int, n int64) *claim {
	c := q.claims[t]
	if c == nil {
		c = &claim{queue: q}
		c.entry.claim = c
		q.claims[t] = c
	}
	if c.active && c.entry.asked != n {
		q.shared.withdraw(c)
	}
	return c
}

// withdrawUnwanted withdraws the claims for which the latest look has not asked.
func (q *keyQueue) withdrawUnwanted() {
	for _, c := range q.claims {
		if c != nil && c.active && !c.wanted {
			q.shared.withdraw(c)
		}
	}
}

// Return puts tokens back into the shared bucket.
func (q *keyQueue) Return(n int64) { q.shared.bucket.restore(q.shared.now, n) }

// dueHeap orders the keys for which an entry waits by when they have to be advanced.
type dueHeap []*keyQueue

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is for package heap.
func (h *dueHeap) Push(x any) {
	q := x.(*keyQueue) //nolint:forcetypeassert // heap.Push is called with nothing else
	q.index = len(*h)
	*h = append(*h, q)
}

// Pop is for package heap.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	q := (*h)[last]
	*h = shrink.Pop(*h)
	return q
}
