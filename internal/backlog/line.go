package backlog

// nowhere is the position of a line that is in no heap.
const nowhere = -1

// unit is the virtual time that an entry of weight 1 and share 1 takes. It is
// large so that dividing it by a share loses little: shares are exact to one
// part in a million.
const unit = 1 << 20

// line is the queue of one class in a flow: a FIFO, and beside it the entries that
// came back when younger ones were in the FIFO already. Tickets ascend in the FIFO,
// so the line's first entry is the older of the FIFO's head and the oldest entry
// beside it.
//
// A line is in the order of its class while it has entries that may start, and
// in none while it is empty or its key is set aside. The own line of a flow
// without entries stands for it in its tier's rest.
type line[T any] struct {
	head, tail *Entry[T]
	flow       *flow[T]
	class      *class[T]
	aged       *aged[T] // nil if empty, as it mostly is
	finish     uint64   // virtual time at which the last entry of the FIFO will end
	tag        uint64   // what heaps order by: the first entry's start, or until at rest
	ticket     uint64   // the first entry's ticket, for ties
	pos        int      // index in the heap that the line is in, or nowhere
	n          int32    // in the FIFO and beside it
	tier       int8
}

func (l *line[T]) before(m *line[T]) bool {
	if l.tag != m.tag {
		return l.tag < m.tag
	}
	return l.ticket < m.ticket
}

// first is the entry that starts next, nil if there is none.
func (l *line[T]) first() *Entry[T] {
	if l.aged == nil {
		return l.head
	}
	return l.oldest()
}

func (l *line[T]) oldest() *Entry[T] {
	if e := (*l.aged)[0]; l.head == nil || e.ticket < l.head.ticket {
		return e
	}
	return l.head
}

// look notes what the line's place in an order depends on.
func (l *line[T]) look() {
	e := l.first()
	l.tag, l.ticket = max(e.tag, l.flow.floor), e.ticket
}

// append puts e at the end of the FIFO, where tags follow one another. virtual
// is the tier's time.
func (l *line[T]) append(e *Entry[T], virtual uint64) {
	if l.n == 0 {
		l.finish = max(l.finish, l.flow.floor) // others of the flow may have started since
	}
	e.tag = max(virtual, l.finish)
	l.finish = e.tag + uint64(e.weight)*uint64(l.flow.cost)
	e.line = l
	e.prev, e.next = l.tail, nil
	if l.tail != nil {
		l.tail.next = e
	} else {
		l.head = e
	}
	l.tail = e
	l.n++
}

// comeBack queues e, which is older than the youngest in the FIFO. It is due as
// soon as its flow is, and its start delays the other entries of the flow.
func (l *line[T]) comeBack(e *Entry[T], virtual uint64) {
	if l.aged == nil {
		l.aged = new(aged[T])
	}
	e.tag, e.line = virtual, l
	l.aged.insert(e)
	l.n++
}

// remove takes e out of the line, wherever it stands. If it starts, its flow is
// charged; if it stood at the end of the FIFO, its flow regains the virtual
// time that it was queued for.
func (l *line[T]) remove(e *Entry[T]) {
	e.line = nil
	l.n--
	if e.place != 0 {
		l.removeAged(e)
		return
	}
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
	e.next, e.prev = nil, nil
}

func (l *line[T]) removeAged(e *Entry[T]) {
	if l.aged.remove(e); len(*l.aged) == 0 {
		l.aged = nil // with the room that it has grown to
	}
}

// appendTo appends the entries of the line.
func (l *line[T]) appendTo(all []*Entry[T]) []*Entry[T] {
	for e := l.head; e != nil; e = e.next {
		all = append(all, e)
	}
	if l.aged != nil {
		all = append(all, *l.aged...)
	}
	return all
}
