package backlog

import (
	"cmp"
	"slices"
)

// flow is the queued entries of one key in one tier, or of that tier's entries
// without a key. Turns are shared between flows. A flow has a queue for each class of
// which it has had entries.
type flow[T any] struct {
	own    queue[T]    // its first, so that a flow of one class is one object
	more   []*queue[T] // those of other classes, ascending
	key    *key[T]     // nil for the entries without a key
	next   *flow[T]    // of the same key, in another tier
	floor  uint64      // virtual time at which its last start ends; none starts before
	until  uint64      // virtual time to which it must be remembered when it is empty
	share  uint32      // the key's
	cost   uint32      // virtual time that one slot takes: unit over the key's share
	queued int32
	run    bool  // one entry represents all of its pieces, see [Run]
	open   int32 // queues in order
}

// init makes f a flow of a tier whose first entry is of a class.
func (f *flow[T]) init(k *key[T], tier int8, c *class[T], share uint32) {
	f.key, f.share, f.cost = k, share, unit/share
	f.own.flow, f.own.class, f.own.tier, f.own.pos = f, c, tier, nowhere
}

// queue returns the queue of a class, made if there is none.
func (f *flow[T]) queue(c *class[T]) *queue[T] {
	if f.own.class == c {
		return &f.own
	}
	return f.other(c)
}

func (f *flow[T]) other(c *class[T]) *queue[T] {
	i, ok := slices.BinarySearchFunc(f.more, c.number, func(q *queue[T], number int) int {
		return cmp.Compare(q.class.number, number)
	})
	if !ok {
		q := &queue[T]{flow: f, tier: f.own.tier, class: c, pos: nowhere}
		f.more = slices.Insert(f.more, i, q)
	}
	return f.more[i]
}

// each calls do with every queue.
func (f *flow[T]) each(do func(*queue[T])) {
	do(&f.own)
	for _, q := range f.more {
		do(q)
	}
}

// start charges the flow for the start of e and returns the virtual time at
// which that is: when the flow's last start has ended, whichever class it was
// of, so that a key gains nothing by spreading its entries over classes.
func (f *flow[T]) start(e *Entry[T]) (tag uint64) {
	tag = max(e.tag, f.floor)
	f.floor = tag + uint64(e.weight)*uint64(f.cost)
	return tag
}
