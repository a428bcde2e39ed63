package backlog

// nowhere is the position of a line that is in no heap.
const nowhere = -1

// unit is the virtual time that an entry of weight 1 and share 1 takes. It is
// large so that dividing it by a share loses little: shares are exact to one
// part in a million. Tags overflow after 2^44 starts in one tier.
const unit = 1 << 20

// line is the FIFO of one class in a flow. It is in the order of its class while
// it has entries that may start, and in none while it is empty or its key is set
// aside. The own line of a flow without entries stands for it in its tier's rest.
type line[T any] struct {
	head, tail *Entry[T]
	flow       *flow[T]
	class      *class[T]
	finish     uint64 // virtual time at which the last entry queued will end
	tag        uint64 // what heaps order by: the first entry's start, or until at rest
	ticket     uint64 // the first entry's ticket, for ties
	pos        int    // index in the heap that the line is in, or nowhere
	n          int32
	tier       int8
}

func (l *line[T]) before(m *line[T]) bool {
	if l.tag != m.tag {
		return l.tag < m.tag
	}
	return l.ticket < m.ticket
}

// look notes what the line's place in an order depends on.
func (l *line[T]) look() {
	l.tag, l.ticket = max(l.head.tag, l.flow.floor), l.head.ticket
}

// append queues e at the end of the line. virtual is the tier's time.
func (l *line[T]) append(e *Entry[T], virtual uint64) {
	if l.n == 0 {
		l.finish = max(l.finish, l.flow.floor) // others of the flow may have started since
	}
	e.line = l
	e.tag = max(virtual, l.finish)
	l.finish = e.tag + uint64(e.weight)*uint64(l.flow.cost)
	e.prev, e.next = l.tail, nil
	if l.tail != nil {
		l.tail.next = e
	} else {
		l.head = e
	}
	l.tail = e
	l.n++
}

// remove takes e out of the line, wherever it stands. What it was queued for is
// given back if nothing stands behind it; if it starts, its flow is charged.
func (l *line[T]) remove(e *Entry[T]) {
	if e == l.tail {
		l.tail = e.prev
		l.finish = e.tag
	} else {
		e.next.prev = e.prev
	}
	if e == l.head {
		l.head = e.next
	} else {
		e.prev.next = e.next
	}
	e.next, e.prev, e.line = nil, nil, nil
	l.n--
}
