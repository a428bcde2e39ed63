package backlog

import (
	"cmp"
	"iter"
	"runtime"
	"slices"
	"sync"
)

// Snapshot is a copy of what is queued, made in pieces by [Scan], and with it all
// that [Backlog.Why] reads. V is what the caller keeps of an entry.
type Snapshot[V any] struct {
	rows   []snapshotRow[V] // in the order of arrival
	queues []snapshotQueue
	queued [Tiers]int
	max    int
	caps   [Tiers]int
	guard  guard
	served int // as guarded has them
	need   int
}

// snapshotRow is one entry.
type snapshotRow[V any] struct {
	value  V
	ticket uint64
	tag    uint64
	queue  int32 // its index in queues
	weight int32
}

// snapshotQueue is a queue as it was when Scan came to it. ahead is counted while
// the rows are explained.
type snapshotQueue struct {
	key      string
	tag      uint64
	floor    uint64
	cost     uint64
	perKey   int
	keyRuns  int
	n        int   // of its rows
	flow     int32 // the index of the first queue of its flow
	tier     int8
	inOrder  bool
	atLimit  bool
	blocked  bool
	ahead    int // rows of this queue that have been explained
	flowRows int // and of its flow, if it is the first of that
}

// PieceMax is the most entries that [Scan] looks at in one piece.
const PieceMax = 256

// Scan copies what is queued in pieces of at most PieceMax steps, and holds lock, which
// guards b, for one piece at a time. A step is an entry, or a key that is looked at;
// entries that came back to one queue are one step. Scan calls keep for each entry, with
// the lock held.
//
// Every entry that is queued all the time is in the snapshot, once. One that arrives
// or leaves meanwhile may be missing, or be there as it was.
func Scan[T, V any](b *Backlog[T], lock sync.Locker, keep func(*Entry[T]) V) *Snapshot[V] {
	return ScanRuns(b, lock, keep, nil)
}

// Piece is a piece of a run, for [ScanRuns].
type Piece[V any] struct {
	Value  V
	Weight int
	Ticket uint64
	Next   uint64 // where to look for the one behind it
}

// ScanRuns is Scan for a backlog that has runs. pieceAt returns the first piece of a run
// at or behind a place, 0 being its beginning, and false if there is none, or none that was
// there when the scan began: arrivals could keep it going.
func ScanRuns[T, V any](
	b *Backlog[T], lock sync.Locker, keep func(*Entry[T]) V, pieceAt func(*Entry[T], uint64) (Piece[V], bool),
) *Snapshot[V] {
	s := &scan[T, V]{b: b, lock: lock, keep: keep, pieceAt: pieceAt}
	lock.Lock()
	n := b.Len()
	lock.Unlock()
	s.sized(n)
	lock.Lock()
	s.last = b.ticket
	for tier := range b.order.tiers {
		s.party(nil, tier)
	}
	// A range over a map allows for changes of the map between its steps.
	for _, k := range b.keys.known {
		s.step()
		for tier := 0; k.flows != nil && tier < Tiers; tier++ {
			s.party(k, tier)
		}
	}
	out := &Snapshot[V]{queued: s.queued, max: b.bounds.max, caps: b.bounds.caps, guard: b.guard}
	out.served, out.need = b.guarded()
	lock.Unlock()
	out.rows, out.queues = s.rows.flat(), s.queues.flat()
	slices.SortFunc(out.rows, func(x, y snapshotRow[V]) int { return cmp.Compare(x.ticket, y.ticket) })
	return out
}

// scan is one run of Scan. Queues and flows come and go while the lock is not held, so
// it keeps none of them over a pause, but looks them up again by key, tier and class.
type scan[T, V any] struct {
	b       *Backlog[T]
	lock    sync.Locker
	keep    func(*Entry[T]) V
	pieceAt func(*Entry[T], uint64) (Piece[V], bool)
	last    uint64 // the ticket of the youngest entry to copy, or arrivals could keep the scan going
	steps   int    // since the last pause
	rows    chunks[snapshotRow[V]]
	queues  chunks[snapshotQueue]
	queued  [Tiers]int
	copied  chunks[*Entry[T]] // of the present queue's FIFO, as the last rows
}

// step counts one step, and reports whether there was a pause.
func (s *scan[T, V]) step() (paused bool) {
	if s.steps++; s.steps < PieceMax {
		return false
	}
	s.steps = 0
	s.lock.Unlock()
	s.reserve()
	runtime.Gosched() // a goroutine that waits for the lock has it before it is taken again
	s.lock.Lock()
	return true
}

// sized sets the length of the chunks: enough for n entries, but at most for four pieces
// of the scan.
func (s *scan[T, V]) sized(n int) {
	size := min(max(n, 1), 4*PieceMax)
	s.rows.size, s.queues.size, s.copied.size = size, size, size
	s.reserve()
}

// reserve makes room for the next piece without the lock, because an allocation may
// have to help the garbage collector.
func (s *scan[T, V]) reserve() {
	n := min(PieceMax, s.rows.size)
	s.rows.reserve(n)
	s.queues.reserve(n)
	s.copied.reserve(n)
}

// party copies the queues of a key in a tier; of the entries without a key if that is
// nil.
func (s *scan[T, V]) party(k *key[T], tier int) {
	first := -1
	for class := range s.b.order.classes {
		if q := s.find(k, tier, class); q != nil && q.n > 0 {
			no := s.addQueue(q)
			if first < 0 {
				first = no
			}
			s.queues.at(no).flow = int32(first)
			if q.aged != nil {
				for _, e := range *q.aged { // in one piece: their heap changes too much to be resumed
					s.add(e, no)
				}
			}
			if q.flow.run {
				s.run(k, tier, class, no)
			} else {
				s.fifo(k, tier, class, no)
			}
		}
	}
}

// find returns a queue, nil if there is none.
func (s *scan[T, V]) find(k *key[T], tier, class int) *queue[T] {
	f := &s.b.order.tiers[tier].plain
	if k != nil {
		if f = k.flow(tier); f == nil {
			return nil
		}
	}
	if f.own.class.number == class {
		return &f.own
	}
	for _, q := range f.more {
		if q.class.number == class {
			return q
		}
	}
	return nil
}

// addQueue copies the state of a queue without its entries.
func (s *scan[T, V]) addQueue(q *queue[T]) (no int) {
	queue := snapshotQueue{
		tag: q.tag, floor: q.flow.floor, cost: uint64(q.flow.cost), tier: q.tier, inOrder: q.pos != nowhere,
		perKey: s.b.keys.perKey,
	}
	if k := q.flow.key; k != nil {
		queue.key, queue.perKey, queue.keyRuns = k.name, s.b.keys.Limit(k.name), int(k.running)
		queue.atLimit, queue.blocked = s.b.keys.atLimit(k), k.blocked != 0
	}
	s.queues.add(queue)
	return s.queues.n - 1
}

// fifo copies the FIFO of a queue, which is there and is the one numbered no.
func (s *scan[T, V]) fifo(k *key[T], tier, class, no int) {
	s.copied.n = 0
	for e := s.find(k, tier, class).head; e != nil && e.ticket <= s.last; {
		s.add(e, no)
		s.copied.add(e)
		next := e.next
		if s.step() {
			next = s.resume(k, tier, class)
		}
		e = next
	}
}

// run copies the pieces of a run. A place in it stays what it is while others leave.
func (s *scan[T, V]) run(k *key[T], tier, class, no int) {
	for at := uint64(0); ; {
		q := s.find(k, tier, class)
		if q == nil || q.head == nil {
			return
		}
		p, ok := s.pieceAt(q.head, at)
		if !ok {
			return
		}
		s.rows.add(snapshotRow[V]{
			value: p.Value, ticket: p.Ticket, tag: q.head.tag, queue: int32(no), weight: int32(p.Weight),
		})
		s.queues.at(no).n++
		s.queued[tier]++
		at = p.Next
		s.step()
	}
}

// resume returns the entry to go on with after a pause: the one behind the last of
// those copied that are still queued, which it finds by forgetting those that have
// left. If all have left, it is the head: what was there then was copied before what
// is there now.
func (s *scan[T, V]) resume(k *key[T], tier, class int) *Entry[T] {
	q := s.find(k, tier, class)
	for q != nil {
		if s.copied.n == 0 {
			return q.head
		}
		e, row := *s.copied.at(s.copied.n - 1), s.rows.at(s.rows.n-1)
		if e.queue == q && e.ticket == row.ticket && e.place == 0 { // it has not left, nor come again since
			return e.next
		}
		s.drop()
		if s.step() {
			q = s.find(k, tier, class)
		}
	}
	return nil
}

func (s *scan[T, V]) add(e *Entry[T], no int) {
	s.rows.add(snapshotRow[V]{value: s.keep(e), ticket: e.ticket, tag: e.tag, queue: int32(no), weight: e.weight})
	s.queues.at(no).n++
	s.queued[e.queue.tier]++
}

// drop removes the last row, which is of an entry that has left.
func (s *scan[T, V]) drop() {
	q := s.queues.at(int(s.rows.at(s.rows.n - 1).queue))
	q.n--
	s.queued[q.tier]--
	s.rows.n--
	s.copied.n--
}

// Place is where an entry of a snapshot waits.
type Place[V any] struct {
	Value   V
	Tier    int
	Reasons Reasons // as Backlog.Why gives them
}

// Len is the number of entries in the snapshot.
func (s *Snapshot[V]) Len() int { return len(s.rows) }

// All explains the entries in the order of their arrival, as [Backlog.Why] does when
// running slots are in use. The backlog is not read, so no lock is needed. It may be
// called once. An entry takes as many steps as its tier has queues, if those are at most
// 256, and else one.
func (s *Snapshot[V]) All(running int) iter.Seq[Place[V]] {
	var ordered [Tiers][]*snapshotQueue
	for i := range s.queues {
		if q := &s.queues[i]; q.inOrder && q.n > 0 {
			ordered[q.tier] = append(ordered[q.tier], q)
		}
	}
	return func(yield func(Place[V]) bool) {
		for i := range s.rows {
			row := &s.rows[i]
			q := &s.queues[row.queue]
			tier := int(q.tier)
			r := Reasons{
				Weight: int(row.weight), Max: s.max, Full: int(row.weight) > s.max-running,
				Cap: s.caps[tier], AtCap: running >= s.caps[tier],
				Key: q.key, PerKey: q.perKey, AtLimit: q.atLimit, Blocked: q.blocked, KeyRuns: q.keyRuns,
				GuardIn:  s.guard.in(tier),
				Reserved: reserved(tier, s.served, s.need, running, s.max),
			}
			copy(r.Ahead[tier+1:], s.queued[tier+1:])
			r.Ahead[tier] = s.aheadInTier(row, q, ordered[tier])
			q.ahead++
			s.queues[q.flow].flowRows++
			if !yield(Place[V]{row.value, tier, r}) {
				return
			}
		}
	}
}

// aheadInTier counts the entries of a row's tier that go before it, at most; see
// order.aheadInTier. The rows before this one have been explained.
func (s *Snapshot[V]) aheadInTier(row *snapshotRow[V], q *snapshotQueue, ordered []*snapshotQueue) int {
	if len(ordered) > maxQueues {
		return s.queued[q.tier] - (q.n - q.ahead)
	}
	ahead := s.queues[q.flow].flowRows
	tag := max(row.tag, q.floor+uint64(ahead)*q.cost)
	others := 0
	for _, other := range ordered {
		if other.flow != q.flow {
			others += startsBefore(tag, other.tag, other.cost, other.n)
		}
	}
	return ahead + others
}
