package backlog

import "slices"

// order is what waits, and which of it may start, in the order of start-time fair queueing: the
// flows of each tier, and the queues of each class that have entries which may start. It
// knows neither limits nor whose turn it is.
type order[T any] struct {
	eligible uint8 // bit per tier that has an entry which is not set aside
	queued   int   // entries, of which a run is one
	all      []int // the numbers of all classes, ascending
	classes  []*class[T]
	class0   class[T] // the first of classes
	tiers    [Tiers]tier[T]
}

func (o *order[T]) init() {
	o.classes, o.all = []*class[T]{&o.class0}, []int{0}
	for i := range o.tiers {
		o.tiers[i].plain.init(nil, int8(i), &o.class0, 1)
	}
}

// class returns the class of a number. It makes those up to it.
func (o *order[T]) class(number int) *class[T] {
	for n := len(o.classes); n <= number; n++ {
		o.classes = append(o.classes, &class[T]{number: n})
		o.all = append(o.all, n)
	}
	return o.classes[number]
}

// queues returns the number of queues of some classes in a tier.
func (o *order[T]) queues(tier int, classes []int) (n int) {
	for _, c := range classes {
		n += len(o.classes[c].orders[tier])
	}
	return n
}

// readyIn returns a bit per tier in which an entry of one of some classes may
// start.
func (o *order[T]) readyIn(classes []int) (ready uint8) {
	for _, c := range classes {
		if c < len(o.classes) {
			ready |= o.classes[c].ready
		}
	}
	return ready
}

// first is the queue of some classes that goes first in a tier, which must be
// ready in one of them. Where there is but one class, no queue is out of date and
// there is nothing to compare: the scheduler pays nothing for classes.
func (o *order[T]) first(tier int, classes []int) *queue[T] {
	if len(o.classes) == 1 {
		return o.class0.orders[tier][0]
	}
	return o.best(tier, classes)
}

// best is the queue with the oldest entry, in some classes, of the flow whose turn
// it is. Tags order flows; within one, queues that waited for different
// reasons have tags that do not follow the age.
func (o *order[T]) best(tier int, classes []int) (best *queue[T]) {
	for _, c := range classes {
		if c >= len(o.classes) || o.classes[c].ready&(1<<tier) == 0 {
			continue
		}
		if q := o.classes[c].top(tier); best == nil || q.before(best) {
			best = q
		}
	}
	if best == nil || len(best.flow.more) == 0 {
		return best
	}
	best.flow.each(func(q *queue[T]) {
		if q.n > 0 && q.ticket < best.ticket && slices.Contains(classes, q.class.number) {
			best = q
		}
	})
	return best
}

// enter puts a queue into the order of its class.
func (o *order[T]) enter(q *queue[T]) {
	c := q.class
	q.look()
	c.orders[q.tier].insert(q)
	c.ready |= 1 << q.tier
	o.eligible |= 1 << q.tier
	o.tiers[q.tier].opened(q.flow)
}

// leave takes a queue out of the order of its class.
func (o *order[T]) leave(q *queue[T]) {
	c, t := q.class, &o.tiers[q.tier]
	c.orders[q.tier].remove(q)
	t.closed(q.flow)
	if len(c.orders[q.tier]) == 0 {
		c.ready &^= 1 << q.tier
		if t.shares == 0 {
			o.eligible &^= 1 << q.tier
		}
	}
}

// settle gives a queue its place after its first entry has changed.
func (o *order[T]) settle(q *queue[T]) {
	switch {
	case q.n == 0:
		if q.pos != nowhere {
			o.leave(q)
		}
		o.tiers[q.tier].emptied(q)
	case q.pos != nowhere:
		q.look()
		q.class.orders[q.tier].fix(q.pos)
	}
}

// setAside takes the queues of a flow out of their orders, so that nothing ever scans
// over them.
func (o *order[T]) setAside(f *flow[T]) {
	f.each(func(q *queue[T]) {
		if q.n > 0 {
			o.leave(q)
		}
	})
}

// readmit undoes setAside. The flow does not get back the time that it was set aside: its
// entries count as queued no earlier than now.
func (o *order[T]) readmit(f *flow[T]) {
	f.floor = max(f.floor, o.tiers[f.own.tier].virtual)
	f.each(func(q *queue[T]) {
		if q.n > 0 {
			o.enter(q)
		}
	})
}

// len is the number of queued entries.
func (o *order[T]) len() (n int) {
	for tier := range o.tiers {
		n += o.tiers[tier].len()
	}
	return n
}
