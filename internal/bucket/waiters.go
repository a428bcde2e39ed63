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
	in    *list  // nil if it is in none
	claim *claim // nil unless it stands for an entry of a key

	next, prev *Entry
}

// waiters has the entries that wait, first in, first out in each tier, and those that
// have been granted until the caller collects them. It knows no time and no bucket.
type waiters struct {
	tiers    [Tiers]fifo
	occupied uint8 // a bit for each tier in which an entry waits
	queued   int
	granted  list
}

// fifo is the queue of a tier.
type fifo struct {
	list
	count int
	need  total // tokens still to come, of all that wait
}

// Queued returns how many wait in a tier.
func (w *waiters) Queued(t int) int { return w.tiers[t].count }

// Granted returns the next entry that has all of its tokens, in the order of the
// grants, or nil.
func (w *waiters) Granted() *Entry { return w.granted.pop() }

// top returns the highest tier in which an entry waits. There must be one.
func (w *waiters) top() int { return bits.Len8(w.occupied) - 1 }

// push appends e to its tier, and reports whether it is the first there.
func (w *waiters) push(e *Entry) (first bool) {
	f := &w.tiers[e.tier]
	f.push(e)
	f.count++
	f.need.add(e.need)
	w.queued++
	w.occupied |= 1 << e.tier
	return f.head == e
}

// drop removes e if it waits or has not been collected yet.
func (w *waiters) drop(e *Entry) {
	switch e.in {
	case &w.granted:
		w.granted.remove(e)
	case &w.tiers[e.tier].list:
		w.dequeue(e)
	}
}

func (w *waiters) dequeue(e *Entry) {
	f := &w.tiers[e.tier]
	f.remove(e)
	f.count--
	f.need.add(-e.need)
	w.queued--
	if f.count == 0 {
		w.occupied &^= 1 << e.tier
	}
}

// grant moves the head of a tier to the granted entries, and returns how many tokens it
// still needed.
func (w *waiters) grant(t int) (needed int64) {
	e := w.tiers[t].head
	w.dequeue(e)
	needed, e.need = e.need, 0
	w.granted.push(e)
	return needed
}

// pay counts n tokens that the head of a tier has received.
func (w *waiters) pay(t int, n int64) {
	f := &w.tiers[t]
	f.head.need -= n
	f.need.add(-n)
}

// free reports whether an entry waits in a tier of which the head needs no tokens.
func (w *waiters) free(t int) bool {
	e := w.tiers[t].head
	return e != nil && e.need+e.owed == 0
}

// ahead returns n tokens more than the entries of tier t and above need, or maxTokens if
// that is less.
func (w *waiters) ahead(t int, n int64) int64 {
	sum := total{}
	sum.add(n)
	for ; t < Tiers; t++ {
		sum.add(w.tiers[t].need.bounded())
	}
	return sum.bounded()
}

// list is a doubly linked list through its entries, so that an entry that gives up
// is removed without a search.
type list struct{ head, tail *Entry }

func (l *list) push(e *Entry) {
	e.in, e.prev, e.next = l, l.tail, nil
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
	e.in, e.prev, e.next = nil, nil, nil
}

// pop removes the first entry and returns it, or nil.
func (l *list) pop() *Entry {
	e := l.head
	if e != nil {
		l.remove(e)
	}
	return e
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
