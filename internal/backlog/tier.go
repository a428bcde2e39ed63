package backlog

// tier is what the flows of one tier have in common.
type tier[T any] struct {
	plain   flow[T]   // the entries without a key; it is never forgotten
	rest    queues[T] // flows without entries that virtual time has not passed yet
	virtual uint64    // the time that the next arrival of a new key is tagged with
	shares  uint64    // of the flows with a queue in order
	queued  int       // entries, of which a run is one
	run     *int      // pieces of the run, if there is one
}

// pass moves virtual time on for a start at tag: to that tag, as in the paper,
// and at least as far as a fair server of all waiting flows would have come
// meanwhile. Without the latter, a stream of keys that are all new would be
// tagged with a time that stands still, and go before the second entry of every
// known key for ever.
func (t *tier[T]) pass(tag uint64, weight int32) {
	step := uint64(weight) * unit
	if t.shares > 1 { // a division costs as much as all the rest
		step /= t.shares
	}
	t.virtual = max(tag, t.virtual+step)
}

// opened and closed count the queues of f that are in the order of their class. A
// flow has one share, however many queues it has.
func (t *tier[T]) opened(f *flow[T]) {
	if f.open++; f.open == 1 {
		t.shares += uint64(f.share)
	}
}

func (t *tier[T]) closed(f *flow[T]) {
	if f.open--; f.open == 0 {
		t.shares -= uint64(f.share)
	}
}

// wake takes a flow that gets an entry out of those at rest.
func (t *tier[T]) wake(f *flow[T]) {
	if f.queued == 0 && f.own.pos != nowhere {
		t.rest.remove(&f.own)
	}
}

// emptied lays the flow of a queue that has become empty to rest, if that was
// its last. When nothing waits any more the next arrivals start afresh, as in the
// paper: virtual time passes the entries without a key, whose flow stays, and
// expire forgets all other flows.
func (t *tier[T]) emptied(q *queue[T]) {
	f := q.flow
	f.until = max(f.until, f.floor, q.finish)
	if f.queued > 0 {
		return
	}
	if f.key != nil {
		f.own.tag, f.own.ticket = f.until, 0
		t.rest.insert(&f.own)
	}
	if t.queued == 0 {
		t.virtual = max(t.virtual, t.plain.until)
	}
}

// passed takes out of rest a flow that virtual time has passed, nil if there is
// none. A flow must be remembered until then, or a key that queues a single
// entry at a time would start afresh each time and starve the others.
func (t *tier[T]) passed() *flow[T] {
	if len(t.rest) == 0 || t.rest[0].tag > t.virtual {
		return nil
	}
	q := t.rest[0]
	t.rest.remove(q)
	return q.flow
}
