package machine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintgo/stint/internal/shrink"
)

// keyTotal is the state of one key in all queues together.
type keyTotal struct {
	running int
	queues  map[*queueState]struct{} // queues in which a task of the key is queued
}

// keyTotals limits how many tasks of one key run in all queues together. A key at its
// limit is blocked in each queue in which a task of it is queued. Tasks are counted only
// while some key has a limit. The caller of each method holds the lock of the machine.
type keyTotals struct {
	limit    int            // tasks of each key that may run; 0: no limit
	own      map[string]int // limits of single keys, which replace limit
	keys     map[string]*keyTotal
	keysPeak int // of keys, for shrink.Delete
}

// limited reports whether any key has a limit.
func (k *keyTotals) limited() bool { return k.limit > 0 || len(k.own) > 0 }

// limitOf returns the limit of a key, 0 if it has none.
func (k *keyTotals) limitOf(key string) int {
	if limit, ok := k.own[key]; ok {
		return limit
	}
	return k.limit
}

// full reports whether a key is at its limit.
func (k *keyTotals) full(key string) bool {
	of := k.keys[key]
	return of != nil && k.limitOf(key) > 0 && of.running >= k.limitOf(key)
}

// of returns the entry of a key, and adds one if there is none.
func (k *keyTotals) of(key string) *keyTotal {
	of := k.keys[key]
	if of == nil {
		of = &keyTotal{queues: make(map[*queueState]struct{})}
		k.keys[key] = of
	}
	return of
}

// forget removes the entry of a key if no task of the key is running or queued.
func (k *keyTotals) forget(key string) {
	if of := k.keys[key]; of != nil && of.running == 0 && len(of.queues) == 0 {
		shrink.Delete(&k.keys, &k.keysPeak, key)
	}
}

// enqueued records that a task of a key has been queued in q.
func (k *keyTotals) enqueued(q *queueState, key string) {
	if key == "" || !k.limited() {
		return
	}
	k.of(key).queues[q] = struct{}{}
	if k.full(key) {
		q.order.Keys().Block(key, causeTotal)
	}
}

// dequeued records that a task of a key has left the order of q.
func (k *keyTotals) dequeued(q *queueState, key string) {
	of := k.keys[key]
	if of == nil || q.order.Keys().Queued(key) > 0 {
		return
	}
	delete(of.queues, q)
	q.order.Keys().Unblock(key, causeTotal)
	k.forget(key)
}

// started records that a task of a key has started.
func (k *keyTotals) started(key string) {
	if key == "" || !k.limited() {
		return
	}
	of := k.of(key)
	of.running++
	if k.full(key) {
		for q := range of.queues {
			q.order.Keys().Block(key, causeTotal)
		}
	}
}

// ended records that a task of a key has stopped running. A key that was at its limit is
// unblocked, and the workers of its queues get a signal.
func (k *keyTotals) ended(key string) {
	of := k.keys[key]
	if of == nil {
		return
	}
	was := k.full(key)
	of.running--
	if was && !k.full(key) {
		byNumber := func(a, b *queueState) int { return cmp.Compare(a.no, b.no) }
		for _, q := range slices.SortedFunc(maps.Keys(of.queues), byNumber) { // in a reproducible order
			q.order.Keys().Unblock(key, causeTotal)
			q.signal()
		}
	}
	k.forget(key)
}

// configure sets the limits. If they change, it counts the running and the queued tasks
// again.
func (k *keyTotals) configure(limit int, own map[string]int, running []ranked[*task], queues map[string]*queueState) {
	if k.limit == limit && maps.Equal(k.own, own) {
		return
	}
	for key, of := range k.keys {
		for q := range of.queues {
			q.order.Keys().Unblock(key, causeTotal)
		}
	}
	*k = keyTotals{limit: limit, own: own, keys: make(map[string]*keyTotal)}
	if !k.limited() {
		return
	}
	for _, e := range running {
		k.started(e.of.lease.row.Key)
	}
	for _, q := range queues {
		q.order.Keys().EachQueued(func(key string) { k.of(key).queues[q] = struct{}{} })
	}
	for key, of := range k.keys {
		for q := range of.queues {
			if k.full(key) {
				q.order.Keys().Block(key, causeTotal)
			}
		}
	}
}
