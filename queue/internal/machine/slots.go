package machine

// slots counts the slots that running tasks take: of their queue, of their key, and of
// the limits over all queues. The caller of each method holds the lock of the machine.
type slots struct {
	total     *total
	keyTotals *keyTotals

	roomEnd uint64 // like queueState.roomEnd, for the limits over all queues
}

// take counts a slot that a task of a queue and a key takes.
func (s *slots) take(q *queueState, key string) {
	q.running++
	s.total.running++
	s.total.leave(q)
	s.keyTotals.started(key)
}

// release counts a slot that a task of a queue and a key has vacated, and offers it to
// the queues that wait for one.
func (s *slots) release(q *queueState, key string) {
	q.running--
	s.total.running--
	q.order.Keys().Finish(key)
	s.keyTotals.ended(key)
	s.total.offer()
}

// shared reports whether there is a limit over all queues, so that the end of a lease may
// let a task of another queue start.
func (s *slots) shared() bool { return s.total.limit > 0 || s.keyTotals.limited() }
