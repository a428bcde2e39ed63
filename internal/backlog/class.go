package backlog

// class is the queues of one class that have entries which may start. Classes
// are kept apart so that a taker of only some of them looks at no others.
type class[T any] struct {
	orders [Tiers]queues[T] // smallest tag first
	number int
	ready  uint8 // bit per tier whose order is not empty
}

// top returns the queue that goes first in a tier, which must have one. A start
// of a flow moves the tags of all its queues, of which only this one is looked
// at; the others are put right when they get here. That finds the smallest, as
// tags only grow.
func (c *class[T]) top(tier int) *queue[T] {
	order := c.orders[tier]
	for {
		q := order[0]
		if q.tag >= q.flow.floor {
			return q
		}
		q.tag = q.flow.floor
		order.down(0)
	}
}
