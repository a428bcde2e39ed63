package csync

import (
	"context"
	"sync"
)

// maxSpare bounds the waiters that a queue keeps for later: enough for a busy
// lock, and no more than about 10 KiB after a rush of a million.
const maxSpare = 64

// waiter is one blocked call. The code that removes it from its queue decides how the
// call ends: another goroutine grants it, or the call itself leaves.
type waiter[V any] struct {
	next, prev *waiter[V]
	value      V               // what the call asks for, sends or receives
	done       <-chan struct{} // its context's
	queued     bool            // still in the queue: neither granted nor gone
	dropped    bool            // taken out because its context had ended: it is not granted

	// ready receives a value when the call is granted. It has room for one, so that
	// the granter never blocks, and it is a channel because nothing else can be
	// waited for together with a context.
	ready chan struct{}
}

// queue is the first-in first-out queue of the waiters of a lock, a barrier or a
// channel: a doubly linked list through the waiters themselves, so that a call that is
// cancelled leaves in O(1). The owner's mutex guards it. The zero value is an empty
// queue.
//
// Used waiters are kept per queue and not in a sync.Pool: a pool is shared by
// the whole process, and a channel that was made in a synctest bubble ends the
// process when it is used outside of it.
type queue[V any] struct {
	first, last *waiter[V]
	len         int
	spare       *waiter[V] // a stack, linked by next
	spares      int
}

// push adds a waiter, of a call with a context whose Done channel is done, at the end.
func (q *queue[V]) push(done <-chan struct{}, value V) *waiter[V] {
	w := q.spare
	if w == nil {
		w = &waiter[V]{ready: make(chan struct{}, 1)}
	} else {
		q.spare, w.next = w.next, nil
		q.spares--
	}
	w.value, w.done, w.queued, w.prev = value, done, true, q.last
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	q.len++
	return w
}

// remove removes w, wherever it is in the queue.
func (q *queue[V]) remove(w *waiter[V]) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.next, w.prev, w.queued = nil, nil, false
	q.len--
}

// ended reports whether the context of w has ended.
func (w *waiter[V]) ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// head returns the first waiter whose context has not ended, nil if there is none. Those
// before it are dropped: a call whose context has ended is granted nothing any more.
func (q *queue[V]) head() *waiter[V] {
	for q.first != nil && q.first.ended() {
		q.drop(q.first)
	}
	return q.first
}

// dropEnded drops all waiters whose contexts have ended.
func (q *queue[V]) dropEnded() {
	for w := q.first; w != nil; {
		next := w.next
		if w.ended() {
			q.drop(w)
		}
		w = next
	}
}

// drop removes w and marks it as dropped: its call returns the cause of its context.
func (q *queue[V]) drop(w *waiter[V]) {
	q.remove(w)
	w.dropped = true
}

// grant removes the first n waiters and returns them, linked by next. The caller
// must wake them, best after it has released the mutex, which a waiter takes as
// soon as it runs.
func (q *queue[V]) grant(n int) *waiter[V] {
	var head, tail *waiter[V]
	for range n {
		w := q.first
		q.remove(w)
		if tail == nil {
			head = w
		} else {
			tail.next = w
		}
		tail = w
	}
	return head
}

// wake ends the wait of w and of all that are linked behind it. It is called
// once for each grant, without the mutex. A nil waiter is an empty chain.
func (w *waiter[V]) wake() {
	for w != nil {
		next := w.next // as soon as w.ready receives, w belongs to its own call again
		w.next = nil
		w.ready <- struct{}{}
		w = next
	}
}

// wait blocks until w is granted, and reports true; or until ctx ends, takes w
// out of the queue and reports false. It is called without mu, which guards the
// queue, and returns with it held: what follows from the change then happens in
// the same critical section.
func (q *queue[V]) wait(ctx context.Context, mu *sync.Mutex, w *waiter[V]) bool {
	select {
	case <-w.ready:
		mu.Lock()
		return true
	case <-ctx.Done():
	}
	mu.Lock()
	if w.queued {
		q.remove(w)
		return false
	}
	if w.dropped {
		return false
	}
	// The grant came first. The value may not have been sent yet, by a granter that
	// needs no mutex for that, and must not be left for the next use of w.
	<-w.ready
	return true
}

// recycle keeps w, whose call is over, for a later push.
func (q *queue[V]) recycle(w *waiter[V]) {
	var none V
	w.value, w.done, w.dropped = none, nil, false
	if q.spares == maxSpare {
		return
	}
	w.next, q.spare = q.spare, w
	q.spares++
}
