package backlog

import "slices"

// Walking further than this to count what is ahead would hold the caller's
// lock for too long; beyond it the count is a bound.
const (
	maxSteps  = 4096
	maxQueues = 256
)

// inTier counts the entries of some classes that may start in a tier, at most.
func (o *order[T]) inTier(tier int, classes []int) (n int) {
	t := &o.tiers[tier]
	if len(classes) == len(o.all) || o.queues(tier, classes) > maxQueues {
		return t.len()
	}
	for _, c := range classes {
		for _, q := range o.classes[c].orders[tier] {
			n += t.pieces(q)
		}
	}
	return n
}

// aheadInTier counts the entries of e's tier, of some classes, that go before it, at most, some
// of which are ahead of it in its queue.
func (o *order[T]) aheadInTier(e *Entry[T], ahead int, classes []int) int {
	q := e.queue
	t := &o.tiers[q.tier]
	if o.queues(int(q.tier), classes) > maxQueues {
		return t.len() - (t.pieces(q) - ahead)
	}
	q.flow.each(func(other *queue[T]) {
		if other != q && slices.Contains(classes, other.class.number) {
			ahead += other.olderThan(e.ticket)
		}
	})
	tag := max(e.tag, q.flow.floor+uint64(ahead)*uint64(q.flow.cost))
	for _, c := range classes {
		for _, other := range o.classes[c].orders[q.tier] {
			if other.flow != q.flow {
				ahead += startsBefore(tag, other.tag, uint64(other.flow.cost), t.pieces(other))
			}
		}
	}
	return ahead
}

// aheadInQueue counts the entries that go before e in its queue, about.
func aheadInQueue[T any](e *Entry[T]) int {
	q := e.queue
	if q.aged == nil {
		return aheadInFIFO(e)
	}
	if e.place == 0 {
		return q.aged.olderThan(e.ticket) + aheadInFIFO(e)
	}
	return q.olderThan(e.ticket)
}

// aheadInFIFO counts the entries between e and the head of its FIFO, from
// whichever end is nearer; in the far middle of a long one it interpolates.
func aheadInFIFO[T any](e *Entry[T]) int {
	q := e.queue
	front, back := e, e
	for step := range maxSteps {
		if front == q.head {
			return step
		}
		if back == q.tail {
			return q.fifo() - 1 - step
		}
		front, back = front.prev, back.next
	}
	return min(q.inFIFO(e.ticket), q.fifo()-1)
}

// olderThan estimates how many entries of the queue came before a ticket.
func (q *queue[T]) olderThan(ticket uint64) int {
	n := q.inFIFO(ticket)
	if q.aged != nil {
		n += q.aged.olderThan(ticket)
	}
	return n
}

// fifo is the number of entries in the FIFO.
func (q *queue[T]) fifo() int {
	if q.aged == nil {
		return int(q.n)
	}
	return int(q.n) - len(*q.aged)
}

// inFIFO estimates how many entries of the FIFO came before a ticket, as if
// tickets were spread evenly.
func (q *queue[T]) inFIFO(ticket uint64) int {
	switch {
	case q.head == nil || ticket <= q.head.ticket:
		return 0
	case ticket > q.tail.ticket:
		return q.fifo()
	}
	part := float64(ticket-q.head.ticket) / float64(q.tail.ticket-q.head.ticket)
	return min(int(part*float64(q.fifo()))+1, q.fifo())
}

// startsBefore bounds how many of the n entries of a queue start before a tag in
// another flow: those whose tags are smaller, if each takes one slot. first is the
// queue's tag, and cost what a slot takes.
func startsBefore(tag, first, cost uint64, n int) int {
	if tag < first {
		return 0
	}
	return min(int((tag-first)/cost)+1, n)
}
