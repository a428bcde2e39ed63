package machine

import "github.com/stintgo/stint/internal/shrink"

// keyRates limits the starts of each key within its queue. A key whose rate allows no
// start at present is blocked in its queue until unblock is called at or after the time
// of its next start. An entry is removed once the key has regained its whole burst,
// because it is then equal to a new one. The caller of each method holds the lock of
// the machine.
type keyRates struct {
	clock  *clock
	byTime heap[*keyRate] // by the time at which a key is unblocked or removed
}

// keyRate is the rate of one key.
type keyRate struct {
	queue   *queueState
	key     string
	arrival fixed  // the theoretical arrival time; see rate
	blocked uint32 // the index in queueState.blocked; 0: the key is not blocked
	due     uint32 // the index in byTime
}

func indexByRate(k *keyRate) *uint32 { return &k.due }

func indexBlocked(k *keyRate) *uint32 { return &k.blocked }

// spend counts a start of a key against its rate.
func (r *keyRates) spend(q *queueState, key string) {
	rate := q.limits.rateOfKey(key)
	if key == "" || !rate.limited() {
		return
	}
	k := q.keys[key]
	if k == nil {
		k = &keyRate{queue: q, key: key}
		q.keys[key] = k
	}
	k.arrival = rate.spend(k.arrival, r.clock.now)
	r.block(k)
}

// restore sets the theoretical arrival time of a key that has spent nothing yet.
func (r *keyRates) restore(q *queueState, key string, arrival fixed) {
	k := &keyRate{queue: q, key: key, arrival: arrival}
	q.keys[key] = k
	r.block(k)
}

// block blocks a key if its rate allows no start at present.
func (r *keyRates) block(k *keyRate) {
	q := k.queue
	if from := q.limits.rateOfKey(k.key).from(k.arrival); from > r.clock.now {
		q.order.Keys().Block(k.key, causeRate)
		q.blocked.set(k, from)
		r.byTime.set(k, from)
	} else {
		r.byTime.set(k, k.arrival.ns+1) // when it has its whole burst again
	}
}

// unblock unblocks the keys whose rates allow a start again, and removes those that have
// regained their whole burst.
func (r *keyRates) unblock() {
	for e, ok := r.byTime.first(); ok && e.rank <= r.clock.now; e, ok = r.byTime.first() {
		k := e.of
		if k.blocked > 0 {
			k.queue.blocked.remove(k)
			k.queue.order.Keys().Unblock(k.key, causeRate)
			k.queue.signal()
		}
		if k.arrival.ns < r.clock.now {
			r.byTime.remove(k)
			shrink.Delete(&k.queue.keys, &k.queue.keysPeak, k.key)
			continue
		}
		r.byTime.set(k, k.arrival.ns+1)
	}
}

// reset removes the entry of a key of a queue, because its rate has changed.
func (r *keyRates) reset(q *queueState, key string) {
	k := q.keys[key]
	if k == nil {
		return
	}
	r.byTime.remove(k)
	if k.blocked > 0 {
		q.blocked.remove(k)
		q.order.Keys().Unblock(key, causeRate)
	}
	shrink.Delete(&q.keys, &q.keysPeak, key)
}

// unspend undoes spend.
func (r *keyRates) unspend(q *queueState, key string) {
	k := q.keys[key]
	rate := q.limits.rateOfKey(key)
	if k == nil || !rate.limited() {
		return
	}
	k.arrival = rate.unspend(k.arrival)
	if k.blocked > 0 {
		q.blocked.remove(k)
		q.order.Keys().Unblock(key, causeRate)
	}
	r.block(k)
}
