package machine

// slots counts the slots that running tasks take: of their queue, of their key, and of
// the limits over all queues. The caller of each method holds the lock of the machine.
type slots struct {
	total     *total
	keyTotals *keyTotals

	ends recentEnds // in all queues, while there is a limit over all queues
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

// limitMark is [claimer.limitMark] for the limits over all queues.
func (s *slots) limitMark(key string, durable uint64) (mark uint64) {
	n := s.ends.after(durable)
	if n == 0 {
		return 0
	}
	if s.total.limit > 0 && s.total.running+n >= s.total.limit {
		mark = s.ends.last()
	}
	running := 0
	if of := s.keyTotals.keys[key]; of != nil {
		running = of.running
	}
	return max(mark, s.ends.keyMark(key, running, s.keyTotals.limitOf(key)))
}

// recentEnds are the ends of remote leases that may not be durable yet. A crash would bring
// these leases back, so a lease that begins in the place of one of them must not be known to
// a worker before its end is durable.
type recentEnds struct{ list []recentEnd }

// recentEnd is the end of a lease of a task with a key.
type recentEnd struct {
	mark uint64 // of the journal, higher than that of the end before
	key  string
}

func (r *recentEnds) none() bool { return len(r.list) == 0 }

// add adds an end. The changes up to the mark durable are durable.
func (r *recentEnds) add(e recentEnd, durable uint64) {
	r.after(durable)
	r.list = append(r.list, e)
}

// after returns the number of ends that are not durable if the changes up to a mark are.
func (r *recentEnds) after(durable uint64) int {
	n := 0
	for n < len(r.list) && r.list[n].mark <= durable {
		n++
	}
	if r.list = r.list[n:]; len(r.list) == 0 {
		r.list = nil
	}
	return len(r.list)
}

// last returns the mark of the last end. There must be one.
func (r *recentEnds) last() uint64 { return r.list[len(r.list)-1].mark }

// keyMark returns the mark of the last end of a key, if the limit of the key, 0 for none,
// would be reached if all its recent ends were undone; else 0.
func (r *recentEnds) keyMark(key string, running, limit int) (mark uint64) {
	if key == "" || limit == 0 || running+len(r.list) < limit {
		return 0
	}
	for _, e := range r.list {
		if e.key == key {
			running++
			mark = e.mark
		}
	}
	if running < limit {
		return 0
	}
	return mark
}
