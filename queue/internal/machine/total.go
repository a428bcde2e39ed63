package machine

import (
	"container/list"
	"time"
)

// total is the limit of tasks that run in all queues together. Queues compete for it, so
// a claim of one queue may have to leave a free slot to another one, and the end of a
// task of one queue has to wake the workers of another one.
//
// A queue that is refused a start for the limit queues up, once. As slots come free, each
// is reserved for the queue that has waited longest, and only the workers of that queue
// get a signal. Other queues start tasks on slots that are free and not reserved. So of
// each queue that was refused before, at most one task starts before the next one of a
// queue that is refused now, whatever else is submitted anywhere. A reservation lapses
// after reservedFor, or when the queue has nothing to start any more: a queue without a
// worker holds a slot for no longer, and holds it again only when it has claimed again.
//
// The caller of each method holds the lock of the machine.
type total struct {
	clock    *clock
	limit    int // 0: there is none
	running  int
	waiting  list.List // queues that have been refused, the first to be refused first
	reserved list.List // queues that have a slot reserved, the first to lapse first
}

// reservedFor is for how long a slot is reserved: long enough for a signal to reach a
// worker on another host, and for its claim to come back.
const reservedFor = time.Second

// place is the place of a queue in the order of a total. The zero value is none.
type place struct {
	in    *list.List
	at    *list.Element
	until int64 // when the reservation lapses
}

// free returns how many slots are free, reserved ones included.
func (t *total) free() int { return t.limit - t.running }

// mayStart reports whether the total lets a queue start a task.
func (t *total) mayStart(q *queueState) bool {
	if t.limit == 0 {
		return true
	}
	if q.place.in == &t.reserved {
		return t.free() > 0
	}
	return t.free() > t.reserved.Len()
}

// leave removes a queue from the order, and with it a slot that is reserved for it.
func (t *total) leave(q *queueState) {
	if q.place.in != nil {
		q.place.in.Remove(q.place.at)
		q.place = place{}
	}
}

// refuse queues up a queue that may not start a task. It returns when a reservation
// lapses, if the free slots are reserved; otherwise a signal comes when there is a slot.
func (t *total) refuse(q *queueState) (at time.Time) {
	if q.place.in == nil {
		q.place = place{in: &t.waiting, at: t.waiting.PushBack(q)}
	}
	if first := t.reserved.Front(); first != nil && t.free() > 0 {
		return timeOf(first.Value.(*queueState).place.until)
	}
	return time.Time{}
}

// offer reserves the free slots for the queues that have waited longest, and wakes their
// listeners.
func (t *total) offer() {
	for first := t.waiting.Front(); first != nil && t.reserved.Len() < t.free(); first = t.waiting.Front() {
		q := first.Value.(*queueState)
		t.leave(q)
		if !q.startable() {
			continue
		}
		q.place = place{&t.reserved, t.reserved.PushBack(q), t.clock.after(reservedFor)}
		q.signal()
	}
}

// lapse ends reservations that have lapsed, and returns when the next one does, 0 if
// there is none.
func (t *total) lapse() (next int64) {
	for first := t.reserved.Front(); first != nil; first = t.reserved.Front() {
		q := first.Value.(*queueState)
		if q.place.until > t.clock.now {
			return q.place.until
		}
		t.leave(q)
		t.offer()
	}
	return 0
}

// startable reports whether a queue has a task that the total alone may keep from
// starting. Its rate counts as one that allows a start: see yield.
func (q *queueState) startable() bool {
	return q.settings.Paused == nil && q.order.Peek(q.running) != nil
}

// yield gives up the place of a queue that has claimed and could not have started a
// task, whatever the total.
func (t *total) yield(q *queueState) {
	if q.place.in == nil {
		return
	}
	if rate := q.limits.rate; !q.startable() || rate.limited() && rate.from(q.arrival) > t.clock.now {
		t.leave(q)
		t.offer()
	}
}

// configure changes the limit. The order of the waiting queues stays; the slots that are
// free may be fewer.
func (t *total) configure(limit int) {
	t.limit = limit
	for t.reserved.Len() > 0 {
		last := t.reserved.Back().Value.(*queueState)
		t.leave(last)
		last.place = place{in: &t.waiting, at: t.waiting.PushFront(last)}
	}
	if limit == 0 {
		for first := t.waiting.Front(); first != nil; first = t.waiting.Front() {
			t.leave(first.Value.(*queueState))
		}
	}
	t.offer()
}
