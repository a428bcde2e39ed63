package machine

// slots counts the slots of the limits that running tasks take: those of their queue, of
// its keys, and of all queues together. The caller of each method holds the lock of the
// machine.
type slots struct {
	total     *total
	keyTotals *keyTotals

	roomEnd uint64 // as in queueState, for the limits over all queues
}

// take counts a slot that a task of a queue and a key takes.
func (s *slots) take(q *queueState, key string) {
	q.running++
	s.total.running++
	s.total.leave(q)
	s.keyTotals.taken(key)
}

// release counts a slot that a task of a queue and a key has vacated, and offers it to
// the queues that wait for one.
func (s *slots) release(q *queueState, key string) {
	q.running--
	s.total.running--
	q.order.Keys().Finish(key)
	s.keyTotals.vacated(key)
	s.total.offer()
}

// shared reports whether the end of a lease may be what lets a task of another queue
// start.
func (s *slots) shared() bool { return s.total.limit > 0 || s.keyTotals.limited() }
