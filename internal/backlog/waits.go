package backlog

import "slices"

// Waits reports whether entries of a key and of any of these classes are queued.
func (b *Backlog[T]) Waits(name string, classes []int) (waits bool) {
	k := b.keys[name]
	if k == nil {
		return false
	}
	for f := k.flows; f != nil; f = f.next {
		f.each(func(l *line[T]) {
			waits = waits || l.n > 0 && slices.Contains(classes, l.class.number)
		})
	}
	return waits
}

// QueuedBy is the number of entries of a key that are queued.
func (b *Backlog[T]) QueuedBy(name string) int {
	if k := b.keys[name]; k != nil {
		return int(k.queued)
	}
	return 0
}
