package backlog

// nowhere is the index of a queue that is in no heap.
const nowhere = -1

// unit is the virtual time that an entry of weight 1 and share 1 takes. It is
// large so that dividing it by a share loses little: shares are exact to one
// part in a million.
const unit = 1 << 20

// queue is the queue of one class in a flow: a FIFO, and beside it the entries that
// came back when younger ones were in the FIFO already. Tickets ascend in the FIFO,
// so the queue's first entry is the older of the FIFO's head and the oldest entry
// beside it.
//
// A queue is in the order of its class while it has entries that may start, and
// in none while it is empty or its key is set aside. The own queue of a flow
// without entries stands for it in its tier's rest.
type queue[T any] struct {
	head, tail *Entry[T]
	flow       *flow[T]
	class      *class[T]
	aged       *aged[T] // nil if empty, as it mostly is
	finish     uint64   // virtual time at which the last entry of the FIFO will end
	tag        uint64   // what heaps order by: the first entry's start, or until at rest
	ticket     uint64   // the first entry's ticket, for ties
	pos        int      // index in the heap that the queue is in, or nowhere
	n          int32    // in the FIFO and beside it
	tier       int8
}

func (q *queue[T]) before(m *queue[T]) bool {
	if q.tag != m.tag {
		return q.tag < m.tag
	}
	return q.ticket < m.ticket
}

// first is the entry that starts next, nil if there is none.
func (q *queue[T]) first() *Entry[T] {
	if q.aged == nil {
		return q.head
	}
	return q.oldest()
}

func (q *queue[T]) oldest() *Entry[T] {
	if e := (*q.aged)[0]; q.head == nil || e.ticket < q.head.ticket {
		return e
	}
	return q.head
}

// look sets the tag and the ticket by which the queue is ordered.
func (q *queue[T]) look() {
	e := q.first()
	q.tag, q.ticket = max(e.tag, q.flow.floor), e.ticket
}

// append puts e at the end of the FIFO, where tags follow one another. virtual
// is the tier's time.
func (q *queue[T]) append(e *Entry[T], virtual uint64) {
	if q.n == 0 {
		q.finish = max(q.finish, q.flow.floor) // others of the flow may have started since
	}
	e.tag = max(virtual, q.finish)
	q.finish = e.tag + uint64(e.weight)*uint64(q.flow.cost)
	e.queue = q
	e.prev, e.next = q.tail, nil
	if q.tail != nil {
		q.tail.next = e
	} else {
		q.head = e
	}
	q.tail = e
	q.n++
}

// comeBack queues e, which is older than the youngest in the FIFO. It is due as
// soon as its flow is, and its start delays the other entries of the flow.
func (q *queue[T]) comeBack(e *Entry[T], virtual uint64) {
	if q.aged == nil {
		q.aged = new(aged[T])
	}
	e.tag, e.queue = virtual, q
	q.aged.insert(e)
	q.n++
}

// remove takes e out of the queue, wherever it stands: at the end of the FIFO, its flow
// gets back the virtual time of e. The caller charges the flow if e starts.
func (q *queue[T]) remove(e *Entry[T]) {
	e.queue = nil
	q.n--
	if e.place != 0 {
		q.removeAged(e)
		return
	}
	if e == q.tail {
		q.tail = e.prev
		q.finish = e.tag
	} else {
		e.next.prev = e.prev
	}
	if e == q.head {
		q.head = e.next
	} else {
		e.prev.next = e.next
	}
	e.next, e.prev = nil, nil
}

func (q *queue[T]) removeAged(e *Entry[T]) {
	if q.aged.remove(e); len(*q.aged) == 0 {
		q.aged = nil // with the room that it has grown to
	}
}

// appendTo appends the entries of the queue.
func (q *queue[T]) appendTo(all []*Entry[T]) []*Entry[T] {
	for e := q.head; e != nil; e = e.next {
		all = append(all, e)
	}
	if q.aged != nil {
		all = append(all, *q.aged...)
	}
	return all
}
