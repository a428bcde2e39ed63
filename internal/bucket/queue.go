package bucket

import "math/bits"

// Entry is a waiting request for tokens. Its memory belongs to the caller, which may
// use it again once it has been granted or removed. The zero value is ready to use.
type Entry struct {
	// Ready is for the caller, to wake the goroutine that waits. The bucket does
	// not use it.
	Ready chan struct{}

	// Err is the error of the bucket's source, if the entry was granted without
	// tokens because of it.
	Err error

	asked int64 // tokens
	need  int64 // tokens still to come
	owed  int64 // tokens still to come from the bucket's source, if it has one
	since int64 // when it was pushed
	tier  int
	place place
	claim *claim // nil unless it stands for an entry of a key

	next, prev *Entry
}

// place says which list an entry is in.
type place uint8

const (
	nowhere place = iota
	inTier
	inGranted
	inKeys // granted by a key's bucket
)

// tier is a first-in, first-out queue and how long it has been passed over.
type tier struct {
	list
	count int
	need  total // tokens still to come, of all that wait
	// behind is how many nanoseconds higher tiers have waited, and so taken
	// all tokens, since this tier last got any. Time in which a
	// debt was repaid does not count, for then no tier gets any.
	behind int64
}

// list is a doubly linked list through its entries, so that an entry that gives up
// is removed without a search.
type list struct{ head, tail *Entry }

func (l *list) push(e *Entry) {
	e.prev, e.next = l.tail, nil
	if l.tail == nil {
		l.head = e
	} else {
		l.tail.next = e
	}
	l.tail = e
}

func (l *list) remove(e *Entry) {
	if e.prev == nil {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.tail = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
}

// Push queues e for n ≥ 0 tokens at the end of tier t. It may be granted at
// once, see [Bucket.Granted].
func (b *Bucket) Push(now int64, e *Entry, t int, n int64) {
	b.enter(now)
	b.advance(now)
	e.tier, e.asked, e.need, e.owed, e.since, e.Err = t, n, n, 0, now, nil
	if b.source != nil {
		e.owed = n
	}
	b.enqueue(e)
	b.advance(now)
	b.leave(b.queued > 0)
}

// Remove removes e, whose caller gives up, and puts back the tokens that it has so
// far, up to a full bucket: all of its tokens if it has been granted meanwhile.
func (b *Bucket) Remove(now int64, e *Entry) {
	b.enter(now)
	b.advance(now)
	switch e.place {
	case inTier:
		b.dequeue(e)
		b.admitFree(e.tier)
	case inGranted:
		b.granted.remove(e)
	case nowhere, inKeys:
	}
	e.place = nowhere
	b.putBack(now, e)
	b.advance(now)
	b.leave(b.queued > 0)
}

// Advance grants what can be granted by now.
func (b *Bucket) Advance(now int64) {
	if b.queued == 0 {
		return
	}
	b.enter(now)
	b.advance(now)
	b.leave(b.queued > 0)
}

// Granted returns the next entry that has all of its tokens, in the order of the
// grants, or nil.
func (b *Bucket) Granted() *Entry {
	e := b.granted.head
	if e != nil {
		b.granted.remove(e)
		e.place = nowhere
	}
	return e
}

// Next returns when [Bucket.Advance] must be called next, if nothing else happens
// before; ok is false if no entry waits and no call is needed.
func (b *Bucket) Next() (due int64, ok bool) {
	return min(b.headDue, b.guardDue), b.queued > 0
}

func (b *Bucket) enqueue(e *Entry) {
	t := &b.tiers[e.tier]
	t.push(e)
	e.place = inTier
	t.count++
	t.need.add(e.need)
	b.queued++
	b.occupied |= 1 << e.tier
	if t.head == e {
		t.behind = 0
		b.admitFree(e.tier)
	}
}

func (b *Bucket) dequeue(e *Entry) {
	t := &b.tiers[e.tier]
	t.remove(e)
	e.place = nowhere
	t.count--
	t.need.add(-e.need)
	b.queued--
	if t.count == 0 {
		b.occupied &^= 1 << e.tier
	}
}

// putBack puts back the tokens that e has so far.
func (b *Bucket) putBack(now int64, e *Entry) {
	b.refund(now, e.asked-e.need)
	if b.source != nil && e.asked > e.owed {
		b.source.Return(e.asked - e.owed)
	}
}

// total is a sum of amounts, each of which may be as large as an int64.
type total struct{ high, low uint64 }

func (s *total) add(n int64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, uint64(n), 0)
	s.high += uint64(n>>63) + carry
}

// bounded returns the sum, or maxTokens if that is less.
func (s *total) bounded() int64 {
	if s.high != 0 || s.low > maxTokens {
		return maxTokens
	}
	return int64(s.low)
}

// Earliest returns when an entry for n tokens that came to tier t now could be admitted at
// the earliest, if no waiter gives up: when the tokens for it and for all
// that go before it have been earned, or by the guard. It knows nothing of a source.
func (b *Bucket) Earliest(now int64, t int, n int64) int64 {
	b.Advance(now)
	switch {
	case n == 0 && b.tiers[t].count == 0:
		return now
	case b.queued == 0:
		return max(b.FreeAt(now, n), now)
	}
	ahead := total{}
	ahead.add(n)
	for i := t; i < Tiers; i++ {
		ahead.add(b.tiers[i].need.bounded())
	}
	spent := b.word.Load() &^ flagLocked
	at := b.current.when(min(spent+ahead.bounded(), maxTokens))
	if b.top() > t {
		at = min(at, now+max(GuardAfter-b.tiers[t].behind, 0))
	}
	return max(at, now)
}

// First returns what waits for the source: the highest tier, how many tokens the
// first in line still needs, and how many wait in all tiers. None does as long
// as the first in line waits for the bucket's own tokens.
func (b *Bucket) First() (t int, n int64, queued int) {
	if b.occupied == 0 || b.rivals.again == 0 {
		return 0, 0, 0
	}
	t = b.top()
	return t, b.tiers[t].head.owed, b.queued
}
