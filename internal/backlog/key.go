package backlog

// key is what the backlog knows of one key. It exists while something of the
// key runs or waits, while the key is blocked, and while its fair turn has not
// come round again: idle keys cost no memory.
type key[T any] struct {
	name    string
	flows   *flow[T] // a list, as few keys have entries in more than one tier
	own     flow[T]  // one of them, so that a key of one tier is one object; free if its key is nil
	running int32
	queued  int32
	blocked Cause
	aside   bool // its queues are out of the order: it is blocked or at its limit
}

// flow returns the flow of the key in a tier, nil if there is none.
func (k *key[T]) flow(tier int) *flow[T] {
	for f := k.flows; f != nil; f = f.next {
		if f.own.tier == int8(tier) {
			return f
		}
	}
	return nil
}

// add returns a new flow of the key in a tier, whose first entry is of a class.
func (k *key[T]) add(tier int, c *class[T], share uint32) *flow[T] {
	f := &k.own
	if f.key != nil {
		f = new(flow[T])
	}
	f.init(k, int8(tier), c, share)
	f.next, k.flows = k.flows, f
	return f
}

// drop forgets a flow.
func (k *key[T]) drop(f *flow[T]) {
	at := &k.flows
	for *at != f {
		at = &(*at).next
	}
	*at = f.next
	*f = flow[T]{}
}
