package backlog

import "slices"

// order is what waits, and which of it may start, in the order of start-time fair queueing: the
// flows of each tier, and the lines of each class that have entries which may start. It
// knows neither limits nor whose turn it is.
type order[T any] struct {
	tiers    [Tiers]tier[T]
	eligible uint8    // bit per tier that has an entry which is not set aside
	class0   class[T] // the first of classes
	classes  []*class[T]
	all      []int // the numbers of all classes, ascending
	queued   int   // entries, of which a run is one
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

// lines returns the number of lines of some classes in a tier.
func (o *order[T]) lines(tier int, classes []int) (n int) {
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

// first is the line of some classes that goes first in a tier, which must be
// ready in one of them. Where there is but one class, no line is out of date and
// there is nothing to compare: the scheduler pays nothing for classes.
func (o *order[T]) first(tier int, classes []int) *line[T] {
	if len(o.classes) == 1 {
		return o.class0.orders[tier][0]
	}
	return o.best(tier, classes)
}

// best is the line with the oldest entry, in some classes, of the flow whose turn
// it is. Tags order flows; within one, lines that waited for different
// reasons have tags that do not follow the age.
func (o *order[T]) best(tier int, classes []int) (best *line[T]) {
	for _, c := range classes {
		if c >= len(o.classes) || o.classes[c].ready&(1<<tier) == 0 {
			continue
		}
		if l := o.classes[c].top(tier); best == nil || l.before(best) {
			best = l
		}
	}
	if best == nil || len(best.flow.more) == 0 {
		return best
	}
	best.flow.each(func(l *line[T]) {
		if l.n > 0 && l.ticket < best.ticket && slices.Contains(classes, l.class.number) {
			best = l
		}
	})
	return best
}

// enter puts a line into the order of its class.
func (o *order[T]) enter(l *line[T]) {
	c := l.class
	l.look()
	c.orders[l.tier].insert(l)
	c.ready |= 1 << l.tier
	o.eligible |= 1 << l.tier
	o.tiers[l.tier].opened(l.flow)
}

// leave takes a line out of the order of its class.
func (o *order[T]) leave(l *line[T]) {
	c, t := l.class, &o.tiers[l.tier]
	c.orders[l.tier].remove(l)
	t.closed(l.flow)
	if len(c.orders[l.tier]) == 0 {
		c.ready &^= 1 << l.tier
		if t.shares == 0 {
			o.eligible &^= 1 << l.tier
		}
	}
}

// settle gives a line its place after its first entry has changed.
func (o *order[T]) settle(l *line[T]) {
	switch {
	case l.n == 0:
		if l.pos != nowhere {
			o.leave(l)
		}
		o.tiers[l.tier].emptied(l)
	case l.pos != nowhere:
		l.look()
		l.class.orders[l.tier].fix(l.pos)
	}
}

// setAside takes the lines of a flow out of their orders, so that nothing ever scans
// over them.
func (o *order[T]) setAside(f *flow[T]) {
	f.each(func(l *line[T]) {
		if l.n > 0 {
			o.leave(l)
		}
	})
}

// readmit undoes setAside. The flow does not get back the time that it was set aside: its
// entries count as queued no earlier than now.
func (o *order[T]) readmit(f *flow[T]) {
	f.floor = max(f.floor, o.tiers[f.own.tier].virtual)
	f.each(func(l *line[T]) {
		if l.n > 0 {
			o.enter(l)
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
