package backlog

// ComeFar sets the virtual times of an empty backlog to what they are when so much is left until they
// are reduced.
func (b *Backlog[T]) ComeFar(left uint64) {
	for tier := range b.order.tiers {
		b.order.tiers[tier].virtual = rebaseAt - left
	}
}
