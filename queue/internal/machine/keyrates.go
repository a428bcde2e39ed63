package machine

import "github.com/stintgo/stint/internal/shrink"

// keyRates is the rates of keys within their queues. A key whose rate allows no start at
// present is set aside in its queue until a call finds that its time has come. A key that
// could start as many tasks as a new key is forgotten. The caller of each method holds
// the lock of the machine.
type keyRates struct {
	clock  *clock
	byTime heap[*keyRate] // by when a key may start again, or is forgotten
}

// keyRate is the rate of one key.
type keyRate struct {
	queue   *queueState
	key     string
	arrival fixed
	blocked uint32 // its index in the heap of keys that are set aside; 0: it is not
	due     uint32 // its index in byTime
}

func placeByRate(k *keyRate) *uint32 { return &k.due }

func placeBlocked(k *keyRate) *uint32 { return &k.blocked }

// spend counts a start of a key.
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

// block sets a key aside if its rate allows no start at present.
func (r *keyRates) block(k *keyRate) {
	q := k.queue
	if from := q.limits.rateOfKey(k.key).from(k.arrival); from > r.clock.now {
		q.order.Keys().Block(k.key, causeRate)
		q.blocked.set(k, from)
		r.byTime.set(k, from)
	} else {
		r.byTime.set(k, k.arrival.ns+1) // when it is as good as new
	}
}

// unblock lets keys go on whose rates allow a start again, and forgets keys that could
// start as many tasks as a new one.
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

// reset forgets all that the keys of a queue have spent, because the rate of keys may
// have changed.
func (r *keyRates) reset(q *queueState) {
	for name, k := range q.keys {
		r.byTime.remove(k)
		if k.blocked > 0 {
			q.blocked.remove(k)
			q.order.Keys().Unblock(name, causeRate)
		}
		shrink.Delete(&q.keys, &q.keysPeak, name)
	}
}

// unspend takes a start of a key back that was counted.
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
