package backlog

// nowhere is the position of a line that is in no heap.
const nowhere = -1

// unit is the virtual time that an entry of weight 1 and share 1 takes. It is
// large so that dividing it by a share loses little: shares are exact to one
// part in a million. Tags overflow after 2^44 starts in one tier.
const unit = 1 << 20

// line is the FIFO of one key in one tier. It is in its tier's order while it
// has entries that may start, in its tier's rest while it is empty but not
// forgotten, and in neither while its key is at its limit.
type line[T any] struct {
	head, tail *Entry[T]
	key        *key[T] // nil for entries without a key
	n          int
	share      uint64 // the key's
	cost       uint64 // virtual time that one slot takes: unit over the key's share
	finish     uint64 // virtual time at which the last entry queued will end
	tag        uint64 // what heaps order by: the first entry's tag, or finish at rest
	ticket     uint64 // the first entry's ticket, for ties
	pos        int    // index in the heap that the line is in, or nowhere
	tier       int8
}

func (l *line[T]) before(m *line[T]) bool {
	if l.tag != m.tag {
		return l.tag < m.tag
	}
	return l.ticket < m.ticket
}

// end is the virtual time at which e ends if it starts at its tag.
func (l *line[T]) end(e *Entry[T]) uint64 { return e.tag + uint64(e.weight)*l.cost }

// append queues e at the end of the line. virtual is the tier's time.
func (l *line[T]) append(e *Entry[T], virtual uint64) {
	e.line = l
	e.tag = max(virtual, l.finish)
	l.finish = l.end(e)
	e.prev, e.next = l.tail, nil
	if l.tail != nil {
		l.tail.next = e
	} else {
		l.head = e
	}
	l.tail = e
	l.n++
}

// remove takes e out of the line, wherever it stands. started says whether it
// runs now, and so uses the virtual time that it was queued for. The new first
// entry's tag is at least what the old one leaves behind: behind an entry that
// waited while the key was at its limit, tags date from before and follow it.
func (l *line[T]) remove(e *Entry[T], started bool) {
	left := e.tag
	if started {
		left = l.end(e)
	}
	if e == l.tail {
		l.tail = e.prev
		l.finish = left
	} else {
		e.next.prev = e.prev
	}
	if e == l.head {
		l.head = e.next
		if l.head != nil {
			l.head.tag = max(l.head.tag, left)
		}
	} else {
		e.prev.next = e.next
	}
	e.next, e.prev, e.line = nil, nil, nil
	l.n--
}

// tier is the lines of one tier.
type tier[T any] struct {
	plain   line[T]  // the entries without a key
	order   lines[T] // lines with entries that may start, smallest tag first
	rest    lines[T] // empty lines whose last entry has not ended in virtual time
	virtual uint64   // the time that the next arrival of a new key is tagged with
	shares  uint64   // of the lines in order
	queued  int
}

// pass moves virtual time on for the start of e: to its start tag, as in the
// paper, and at least as far as a fair server of all waiting lines would have
// come meanwhile. Without the latter, a stream of keys that are all new would
// be tagged with a time that stands still, and go before the second entry of
// every known key for ever.
func (t *tier[T]) pass(e *Entry[T]) {
	step := uint64(e.weight) * unit
	if t.shares > 1 { // a division costs as much as all the rest
		step /= t.shares
	}
	t.virtual = max(e.tag, t.virtual+step)
}

// first is the entry that goes next. The tier must have an eligible one.
func (t *tier[T]) first() *Entry[T] { return t.order[0].head }

// enter puts a line with entries into the order. A line that was set aside
// while its key was at its limit does not get that time back: its first entry
// counts as queued no earlier than now.
func (t *tier[T]) enter(l *line[T]) {
	l.head.tag = max(l.head.tag, t.virtual)
	l.tag, l.ticket = l.head.tag, l.head.ticket
	t.order.insert(l)
	t.shares += l.share
}

// leave takes a line out of the order.
func (t *tier[T]) leave(l *line[T]) {
	t.order.remove(l)
	t.shares -= l.share
}

// settle gives a line its place after its first entry has changed.
func (t *tier[T]) settle(l *line[T]) {
	if l.n > 0 {
		if l.pos != nowhere {
			l.tag, l.ticket = l.head.tag, l.head.ticket
			t.order.fix(l.pos)
		}
		return
	}
	if l.pos != nowhere {
		t.leave(l)
	}
	l.tag, l.ticket = l.finish, 0
	t.rest.insert(l)
}

// lines is a binary min-heap of lines that know their index.
type lines[T any] []*line[T]

func (h *lines[T]) insert(l *line[T]) {
	l.pos = len(*h)
	*h = append(*h, l)
	h.up(l.pos)
}

func (h *lines[T]) remove(l *line[T]) {
	i, last := l.pos, len(*h)-1
	(*h)[i] = (*h)[last]
	(*h)[i].pos = i
	(*h)[last] = nil
	*h = (*h)[:last]
	l.pos = nowhere
	if i < last {
		h.fix(i)
	}
}

// fix restores the order after the line at i has changed.
func (h *lines[T]) fix(i int) {
	if !h.down(i) {
		h.up(i)
	}
}

func (h *lines[T]) up(i int) {
	s := *h
	for i > 0 {
		parent := (i - 1) / 2
		if !s[i].before(s[parent]) {
			return
		}
		s.swap(i, parent)
		i = parent
	}
}

func (h *lines[T]) down(i int) (moved bool) {
	s := *h
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(s); child++ {
			if s[child].before(s[least]) {
				least = child
			}
		}
		if least == i {
			return moved
		}
		s.swap(i, least)
		i, moved = least, true
	}
}

func (h lines[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}
