package backlog

// Virtual times are uint64. A tier whose time has reached rebaseAt has all of its times
// reduced by rebaseBy, so that they never overflow: above rebaseAt there is room for the
// entries that are queued in one flow, which may weigh 2^43 slots in all. A time that is
// further than rebaseBy behind the tier's counts as that far behind.
const (
	rebaseAt = 1 << 63
	rebaseBy = 1 << 62
)

// rebase reduces the virtual times of a tier that has reached rebaseAt. The cost is linear
// in what waits and in the number of keys, once in 2^42 slots that start.
func (b *Backlog[T]) rebase(tier int) {
	t := &b.order.tiers[tier]
	t.virtual -= rebaseBy
	t.plain.rebase()
	for _, k := range b.keys.known {
		if f := k.flow(tier); f != nil {
			f.rebase()
		}
	}
	t.rest.restore()
	for _, c := range b.order.classes {
		c.orders[tier].restore()
	}
}

func (f *flow[T]) rebase() {
	f.floor, f.until = earlier(f.floor), earlier(f.until)
	f.each(func(q *queue[T]) {
		q.finish, q.tag = earlier(q.finish), earlier(q.tag)
		for _, e := range q.appendTo(nil) {
			e.tag = earlier(e.tag)
		}
	})
}

func earlier(virtual uint64) uint64 { return virtual - min(virtual, rebaseBy) }

// restore restores the order of queues whose tags are equal now and were not.
func (h queues[T]) restore() {
	for i := range h {
		h.up(i)
	}
}
