package machine

import (
	"container/list"
	"time"
)

// total is the limit of tasks that run in all queues together. Queues compete for its
// slots: a claim of one queue may have to leave a free slot to another queue, and the end
// of a task of one queue may wake the workers of another queue.
//
// A queue that the limit keeps from starting a task joins a FIFO list, once. A slot
// that becomes free is reserved for the first queue of the list, and only the workers
// of that queue get a signal. Other queues can only use free slots that are not
// reserved. So before a queue that joins now gets its slot, each queue ahead of it
// starts at most one task from its place in the list, whatever is submitted meanwhile.
// A reservation expires after reservedFor, or when the queue has no task to start: a
// queue without workers holds a slot no longer than that, and joins again only with its
// next claim.
//
// The caller of each method holds the lock of the machine.
type total struct {
	clock    *clock
	limit    int // 0: no limit
	running  int
	waiting  list.List // of *queueState: queues that were refused, in that order
	reserved list.List // of *queueState: queues with a reserved slot, the first to expire first
}

// reservedFor is how long a slot is reserved: long enough for a signal to reach a
// worker on another host, and for the claim of that worker to arrive.
const reservedFor = time.Second

// place is the place of a queue in one of the lists of total. The zero value says that the queue is in none.
type place struct {
	in    *list.List
	at    *list.Element
	until int64 // when the reservation expires
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

// leave removes a queue from its list, and ends its reservation if it has one.
func (t *total) leave(q *queueState) {
	if q.place.in != nil {
		q.place.in.Remove(q.place.at)
		q.place = place{}
	}
}

// refuse appends a queue that may not start a task to the waiting list. If free slots are
// reserved, it returns when the first reservation expires; otherwise it returns zero, and
// the queue gets a signal when a slot is reserved for it.
func (t *total) refuse(q *queueState) (at time.Time) {
	if q.place.in == nil {
		q.place = place{in: &t.waiting, at: t.waiting.PushBack(q)}
	}
	if first := t.reserved.Front(); first != nil && t.free() > 0 {
		return timeOf(first.Value.(*queueState).place.until)
	}
	return time.Time{}
}

// offer reserves the free slots for the first queues of the waiting list, and wakes their
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

// expire ends reservations that have expired, and returns when the next one expires, 0 if
// there is none.
func (t *total) expire() (next int64) {
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

// startable reports whether a queue has a task that could start but for the total and the
// rate of the queue; yield checks the rate.
func (q *queueState) startable() bool {
	return q.settings.Paused == nil && q.order.Peek(q.running) != nil
}

// yield ends the reservation of a queue that has claimed and could not start a task even
// without the total.
func (t *total) yield(q *queueState) {
	if q.place.in == nil {
		return
	}
	if rate := q.limits.rate; !q.startable() || rate.limited() && rate.from(q.arrival) > t.clock.now {
		t.leave(q)
		t.offer()
	}
}

// configure changes the limit. Reservations end, and their queues return to the front of
// the waiting list, because there may be fewer free slots now.
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
