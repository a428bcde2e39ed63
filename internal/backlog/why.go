package backlog

import "slices"

// Reasons says why an entry does not start, or would not if it arrived. They
// come out of the state that admission itself reads.
type Reasons struct {
	Weight   int // slots that the entry needs
	Max      int
	Full     bool // running plus the entry's weight is above Max
	Cap      int
	AtCap    bool   // running has reached the tier's cap
	Key      string // the entry's key, empty for none
	PerKey   int
	AtLimit  bool // as many of the key run as may
	Blocked  bool // the key is blocked; see [Keys.Block]
	KeyRuns  int
	Ahead    [Tiers]int // entries that go first, at most, by tier
	GuardIn  int        // turns until the guard's turn of the entry's tier; 0 is now
	Reserved bool       // an entry that needs several slots holds this one back until it has them
}

// Why explains a queued entry. The cost does not grow with the length of the
// backlog beyond a few thousand steps.
func (b *Backlog[T]) Why(e *Entry[T], running int) Reasons {
	return b.why(e, aheadInQueue(e), int(e.weight), running, b.order.all)
}

// WhyOf is Why, but of the entries that go first it counts only those of some classes, each
// named once: the others are not taken.
func (b *Backlog[T]) WhyOf(e *Entry[T], running int, classes []int) Reasons {
	classes = slices.DeleteFunc(slices.Clone(classes), func(c int) bool { return c >= len(b.order.classes) })
	return b.why(e, aheadInQueue(e), int(e.weight), running, classes)
}

func (b *Backlog[T]) why(e *Entry[T], aheadInQueue, weight, running int, classes []int) Reasons {
	q := e.queue
	r := b.reasons(int(q.tier), q.flow.key, e.Key(), weight, running)
	for higher := int(q.tier) + 1; higher < Tiers; higher++ {
		r.Ahead[higher] = b.inTier(higher, classes)
	}
	r.Ahead[q.tier] = b.aheadInTier(e, aheadInQueue, classes)
	guard, need := b.guarded()
	r.Reserved = reserved(int(q.tier), guard, need, running, b.slots.max)
	return r
}

// guarded returns the tier that the guard serves this turn, or -1, and the weight of its first
// entry.
func (b *Backlog[T]) guarded() (tier, weight int) {
	tier, ok := b.guard.tier()
	if !ok || b.order.eligible&(1<<tier) == 0 {
		return -1, 0
	}
	return tier, int(b.order.first(tier, b.order.all).first().weight)
}

// reserved reports whether an entry of a tier waits because the first entry of a lower one, which
// the guard serves, lacks slots. What waits in higher tiers is counted as ahead.
func reserved(tier, guard, need, running, maximum int) bool {
	return guard >= 0 && guard < tier && running < maximum && need > maximum-running
}

// WhyNot explains why an entry that arrived now would not start at once.
func (b *Backlog[T]) WhyNot(tier int, key string, weight, running int) Reasons {
	k := b.keys.known[key]
	r := b.reasons(tier, k, key, weight, running)
	for i := tier; i < Tiers; i++ {
		r.Ahead[i] = b.order.tiers[i].len()
	}
	r.Reserved = b.Closed(running)&(1<<tier) != 0 && b.order.eligible&(1<<tier) == 0
	return r
}

func (b *Backlog[T]) reasons(tier int, k *key[T], key string, weight, running int) Reasons {
	r := Reasons{
		Key: key, Weight: weight,
		Max: b.slots.max, Full: weight > b.slots.max-running,
		Cap: b.slots.caps[tier], AtCap: running >= b.slots.caps[tier],
		PerKey:  b.keys.Limit(key),
		AtLimit: b.keys.atLimit(k),
		GuardIn: b.guard.in(tier),
	}
	if k != nil {
		r.KeyRuns, r.Blocked = int(k.running), k.blocked != 0
	}
	return r
}

// Walking further than this to count what is ahead would hold the caller's
// lock for too long; beyond it the count is a bound.
const (
	maxSteps  = 4096
	maxQueues = 256
)

// inTier counts the entries of some classes that may start in a tier, at most.
func (b *Backlog[T]) inTier(tier int, classes []int) (n int) {
	t := &b.order.tiers[tier]
	if len(classes) == len(b.order.all) || b.order.queues(tier, classes) > maxQueues {
		return t.len()
	}
	for _, c := range classes {
		for _, q := range b.order.classes[c].orders[tier] {
			n += t.pieces(q)
		}
	}
	return n
}

// aheadInTier counts the entries of e's tier, of some classes, that go before it, at most, some
// of which are ahead of it in its queue.
func (b *Backlog[T]) aheadInTier(e *Entry[T], ahead int, classes []int) int {
	q := e.queue
	t := &b.order.tiers[q.tier]
	if b.order.queues(int(q.tier), classes) > maxQueues {
		return t.len() - (t.pieces(q) - ahead)
	}
	q.flow.each(func(other *queue[T]) {
		if other != q && slices.Contains(classes, other.class.number) {
			ahead += other.olderThan(e.ticket)
		}
	})
	tag := max(e.tag, q.flow.floor+uint64(ahead)*uint64(q.flow.cost))
	for _, c := range classes {
		for _, other := range b.order.classes[c].orders[q.tier] {
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
