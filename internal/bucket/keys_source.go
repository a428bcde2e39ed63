package bucket

import "github.com/stintgo/stint/internal/shrink"

var _ Source = (*keyQueue)(nil)

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
	k, c := q.keys, q.claimFor(t, n)
	c.wanted = true
	if !c.active {
		if k.shared.queued == 0 && !k.shared.sourced && k.shared.Take(k.now, n) == Taken {
			return n, 0, nil
		}
		c.active = true
		k.claims[t]++
		k.shared.Push(k.now, &c.entry, t, n)
		if c.entry.in == &k.shared.granted {
			k.shared.granted.remove(&c.entry)
			c.ready = true
		}
	}
	if !c.ready {
		return 0, Never, nil
	}
	c.active, c.ready = false, false
	k.claims[t]--
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
		q.keys.withdraw(c)
	}
	return c
}

// Return puts tokens back into the shared bucket.
func (q *keyQueue) Return(n int64) { q.keys.shared.restore(q.keys.now, n) }

// revive makes b a bucket that no entry waits for and that has spent some tokens. It may
// have been used before, up to when its last entry left.
func (b *Bucket) revive(at *curve, spent int64, source Source) {
	b.supply.source, b.sourced, b.keyed = source, true, true
	b.open(at, spent)
}

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
