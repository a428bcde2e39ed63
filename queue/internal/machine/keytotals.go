package machine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/stintgo/stint/internal/shrink"
)

// keyTotal is what there is of a key in all queues together.
type keyTotal struct {
	running int
	queues  map[*queueState]struct{} // in which tasks of the key are queued
}

// keyTotals is the limits of tasks of one key that run in all queues together. A key at
// its limit is set aside in each queue that has tasks of it. Nothing is counted while no
// key has a limit. The caller of each method holds the lock of the machine.
type keyTotals struct {
	limit    int            // of each key; 0 is none
	own      map[string]int // of single keys, instead of that
	keys     map[string]*keyTotal
	keysPeak int // as shrink.Delete has it
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

// full reports whether as many tasks of a key run as may.
func (k *keyTotals) full(key string) bool {
	of := k.keys[key]
	return of != nil && k.limitOf(key) > 0 && of.running >= k.limitOf(key)
}

// of returns the entry of a key, made if there is none.
func (k *keyTotals) of(key string) *keyTotal {
	of := k.keys[key]
	if of == nil {
		of = &keyTotal{queues: make(map[*queueState]struct{})}
		k.keys[key] = of
	}
	return of
}

// forget removes the entry of a key of which no task runs or is queued.
func (k *keyTotals) forget(key string) {
	if of := k.keys[key]; of != nil && of.running == 0 && len(of.queues) == 0 {
		shrink.Delete(&k.keys, &k.keysPeak, key)
	}
}

// enqueued records that a queue has a task of a key to start.
func (k *keyTotals) enqueued(q *queueState, key string) {
	if key == "" || !k.limited() {
		return
	}
	k.of(key).queues[q] = struct{}{}
	if k.full(key) {
		q.order.Keys().Block(key, causeTotal)
	}
}

// dequeued records that a queue has one task of a key less to start.
func (k *keyTotals) dequeued(q *queueState, key string) {
	of := k.keys[key]
	if of == nil || q.order.Keys().Queued(key) > 0 {
		return
	}
	delete(of.queues, q)
	q.order.Keys().Unblock(key, causeTotal)
	k.forget(key)
}

// taken records that a task of a key has started.
func (k *keyTotals) taken(key string) {
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

// vacated records that a task of a key runs no longer.
func (k *keyTotals) vacated(key string) {
	of := k.keys[key]
	if of == nil {
		return
	}
	was := k.full(key)
	of.running--
	if was && !k.full(key) {
		byNumber := func(a, b *queueState) int { return cmp.Compare(a.no, b.no) }
		for _, q := range slices.SortedFunc(maps.Keys(of.queues), byNumber) { // always in the same order
			q.order.Keys().Unblock(key, causeTotal)
			q.signal()
		}
	}
	k.forget(key)
}

// configure changes the limits. If they differ from the present ones, it counts anew what
// runs and what is queued.
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
		k.taken(e.of.lease.row.Key)
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
