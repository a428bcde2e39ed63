package backlog

import "slices"

// class is the lines of one class that have entries which may start. Classes
// are kept apart so that whoever takes only some of them looks at nothing else.
type class[T any] struct {
	orders [Tiers]lines[T] // smallest tag first
	number int
	ready  uint8 // bit per tier whose order is not empty
}

// top returns the line that goes first in a tier, which must have one. A start
// of a flow moves the tags of all its lines, of which only this one is looked
// at; the others are put right when they get here. That finds the smallest, as
// tags only grow.
func (c *class[T]) top(tier int) *line[T] {
	order := c.orders[tier]
	for {
		l := order[0]
		if l.tag >= l.flow.floor {
			return l
		}
		l.tag = l.flow.floor
		order.down(0)
	}
}

// addClasses makes the classes up to n.
func (b *Backlog[T]) addClasses(n int) {
	for c := len(b.classes); c <= n; c++ {
		b.classes = append(b.classes, &class[T]{number: c})
		b.all = append(b.all, c)
	}
}

// readyIn returns a bit per tier in which an entry of one of some classes may
// start.
func (b *Backlog[T]) readyIn(classes []int) (ready uint8) {
	for _, c := range classes {
		if c < len(b.classes) {
			ready |= b.classes[c].ready
		}
	}
	return ready
}

// first is the line of some classes that goes first in a tier, which must be
// ready in one of them. Where there is but one class, no line is out of date and
// there is nothing to compare: the scheduler pays nothing for classes.
func (b *Backlog[T]) first(tier int, classes []int) *line[T] {
	if len(b.classes) == 1 {
		return b.class0.orders[tier][0]
	}
	return b.best(tier, classes)
}

// best is the line with the oldest entry, in some classes, of the flow whose turn
// it is. Tags tell between flows; within one, lines that waited for different
// reasons have tags that do not tell the age.
func (b *Backlog[T]) best(tier int, classes []int) (best *line[T]) {
	for _, c := range classes {
		if c >= len(b.classes) || b.classes[c].ready&(1<<tier) == 0 {
			continue
		}
		if l := b.classes[c].top(tier); best == nil || l.before(best) {
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
func (b *Backlog[T]) enter(l *line[T]) {
	c := l.class
	l.look()
	c.orders[l.tier].insert(l)
	c.ready |= 1 << l.tier
	b.eligible |= 1 << l.tier
	b.tiers[l.tier].opened(l.flow)
}

// leave takes a line out of the order of its class.
func (b *Backlog[T]) leave(l *line[T]) {
	c, t := l.class, &b.tiers[l.tier]
	c.orders[l.tier].remove(l)
	t.closed(l.flow)
	if len(c.orders[l.tier]) == 0 {
		c.ready &^= 1 << l.tier
		if t.shares == 0 {
			b.eligible &^= 1 << l.tier
		}
	}
}

// settle gives a line its place after its first entry has changed.
func (b *Backlog[T]) settle(l *line[T]) {
	switch {
	case l.n == 0:
		if l.pos != nowhere {
			b.leave(l)
		}
		b.tiers[l.tier].emptied(l)
	case l.pos != nowhere:
		l.look()
		l.class.orders[l.tier].fix(l.pos)
	}
}
