package machine

import "github.com/stintgo/stint/internal/shrink"

// keyRates is the rates of keys within their queues. A key whose rate allows no start at
// present is set aside in its queue until a call finds that its time has come; one that
// could start as many tasks as a new key is forgotten. The caller of each method holds the
// lock of the machine.
type keyRates struct {
	clock  *clock
	byTime heap[*keyRate] // by when a key may start again, or is forgotten
}

// keyRate is the rate of one key. It is forgotten when the key could start as
// many as a new one could.
type keyRate struct {
	line    *line
	key     string
	arrival fixed
	blocked uint32 // its place among those that may start nothing until a time; 0: it is not one of them
	due     uint32 // and among those of which something is to be done at a time
}

func placeByRate(k *keyRate) *uint32  { return &k.due }
func placeBlocked(k *keyRate) *uint32 { return &k.blocked }

// spend counts a start of a key.
func (r *keyRates) spend(l *line, key string) {
	rate := l.limits.rateOfKey(key)
	if key == "" || !rate.limited() {
		return
	}
	k := l.keys[key]
	if k == nil {
		k = &keyRate{line: l, key: key}
		l.keys[key] = k
	}
	k.arrival = rate.spend(k.arrival, r.clock.now)
	r.block(k)
}

// block sets a key aside that is not, if its rate allows no start at present.
func (r *keyRates) block(k *keyRate) {
	l := k.line
	if from := l.limits.rateOfKey(k.key).from(k.arrival); from > r.clock.now {
		l.order.Block(k.key, causeRate)
		l.blocked.set(k, from)
		r.byTime.set(k, from)
	} else {
		r.byTime.set(k, k.arrival.ns+1) // when it is as good as new
	}
}

// unblock lets the keys go on whose rates allow a start again, and forgets
// those that could start as many as a new one.
func (r *keyRates) unblock() {
	for e, ok := r.byTime.first(); ok && e.rank <= r.clock.now; e, ok = r.byTime.first() {
		k := e.of
		if k.blocked > 0 {
			k.line.blocked.remove(k)
			k.line.order.Unblock(k.key, causeRate)
			k.line.signal()
		}
		if k.arrival.ns < r.clock.now {
			r.byTime.remove(k)
			shrink.Delete(&k.line.keys, &k.line.keysPeak, k.key)
			continue
		}
		r.byTime.set(k, k.arrival.ns+1)
	}
}

// reset has every key of a queue begin anew, because the rate of keys
// may have changed.
func (r *keyRates) reset(l *line) {
	for name, k := range l.keys {
		r.byTime.remove(k)
		if k.blocked > 0 {
			l.blocked.remove(k)
			l.order.Unblock(name, causeRate)
		}
		shrink.Delete(&l.keys, &l.keysPeak, name)
	}
}

// unspend takes a start of a key back that was counted.
func (r *keyRates) unspend(l *line, key string) {
	k := l.keys[key]
	rate := l.limits.rateOfKey(key)
	if k == nil || !rate.limited() {
		return
	}
	k.arrival = rate.unspend(k.arrival)
	if k.blocked > 0 {
		l.blocked.remove(k)
		l.order.Unblock(key, causeRate)
	}
	r.block(k)
}
