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
	lines  []snapshotLine
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
	line   int32 // its index in lines
	weight int32
}

// snapshotLine is a line as it was when Scan came to it. ahead is counted while
// the rows are explained.
type snapshotLine struct {
	key      string
	tag      uint64
	floor    uint64
	cost     uint64
	perKey   int
	keyRuns  int
	n        int   // of its rows
	flow     int32 // the index of the first line of its flow
	tier     int8
	inOrder  bool
	atLimit  bool
	blocked  bool
	ahead    int // rows of this line that have been explained
	flowRows int // and of its flow, if it is the first of that
}

// PieceMax is the most entries that [Scan] looks at in one piece.
const PieceMax = 256

// Scan copies what is queued in pieces of at most PieceMax steps, and holds lock, which
// guards b, for one piece at a time. A step is an entry, or a key that is looked at;
// entries that came back to one line are one step. Scan calls keep for each entry, with
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
	out := &Snapshot[V]{queued: s.queued, max: b.slots.max, caps: b.slots.caps, guard: b.guard}
	out.served, out.need = b.guarded()
	lock.Unlock()
	out.rows, out.lines = s.rows.flat(), s.lines.flat()
	slices.SortFunc(out.rows, func(x, y snapshotRow[V]) int { return cmp.Compare(x.ticket, y.ticket) })
	return out
}

// scan is one run of Scan. Lines and flows come and go while the lock is not held, so
// it keeps none of them over a pause, but looks them up again by key, tier and class.
type scan[T, V any] struct {
	b       *Backlog[T]
	lock    sync.Locker
	keep    func(*Entry[T]) V
	pieceAt func(*Entry[T], uint64) (Piece[V], bool)
	last    uint64 // the ticket of the youngest entry to copy, or arrivals could keep the scan going
	steps   int    // since the last pause
	rows    chunks[snapshotRow[V]]
	lines   chunks[snapshotLine]
	queued  [Tiers]int
	copied  chunks[*Entry[T]] // of the present line's FIFO, as the last rows
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
	s.rows.size, s.lines.size, s.copied.size = size, size, size
	s.reserve()
}

// reserve makes room for the next piece without the lock, because an allocation may
// have to help the garbage collector.
func (s *scan[T, V]) reserve() {
	n := min(PieceMax, s.rows.size)
	s.rows.reserve(n)
	s.lines.reserve(n)
	s.copied.reserve(n)
}

// party copies the lines of a key in a tier; of the entries without a key if that is
// nil.
func (s *scan[T, V]) party(k *key[T], tier int) {
	first := -1
	for class := range s.b.order.classes {
		if l := s.find(k, tier, class); l != nil && l.n > 0 {
			no := s.addLine(l)
			if first < 0 {
				first = no
			}
			s.lines.at(no).flow = int32(first)
			if l.aged != nil {
				for _, e := range *l.aged { // in one piece: their heap changes too much to be resumed
					s.add(e, no)
				}
			}
			if l.flow.run {
				s.run(k, tier, class, no)
			} else {
				s.fifo(k, tier, class, no)
			}
		}
	}
}

// find returns a line, nil if there is none.
func (s *scan[T, V]) find(k *key[T], tier, class int) *line[T] {
	f := &s.b.order.tiers[tier].plain
	if k != nil {
		if f = k.flow(tier); f == nil {
			return nil
		}
	}
	if f.own.class.number == class {
		return &f.own
	}
	for _, l := range f.more {
		if l.class.number == class {
			return l
		}
	}
	return nil
}

// addLine copies the state of a line without its entries.
func (s *scan[T, V]) addLine(l *line[T]) (no int) {
	line := snapshotLine{
		tag: l.tag, floor: l.flow.floor, cost: uint64(l.flow.cost), tier: l.tier, inOrder: l.pos != nowhere,
		perKey: s.b.keys.perKey,
	}
	if k := l.flow.key; k != nil {
		line.key, line.perKey, line.keyRuns = k.name, s.b.keys.Limit(k.name), int(k.running)
		line.atLimit, line.blocked = s.b.keys.atLimit(k), k.blocked != 0
	}
	s.lines.add(line)
	return s.lines.n - 1
}

// fifo copies the FIFO of a line, which is there and is the one numbered no.
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
		l := s.find(k, tier, class)
		if l == nil || l.head == nil {
			return
		}
		p, ok := s.pieceAt(l.head, at)
		if !ok {
			return
		}
		s.rows.add(snapshotRow[V]{
			value: p.Value, ticket: p.Ticket, tag: l.head.tag, line: int32(no), weight: int32(p.Weight),
		})
		s.lines.at(no).n++
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
	l := s.find(k, tier, class)
	for l != nil {
		if s.copied.n == 0 {
			return l.head
		}
		e, row := *s.copied.at(s.copied.n - 1), s.rows.at(s.rows.n-1)
		if e.line == l && e.ticket == row.ticket && e.place == 0 { // it has not left, nor come again since
			return e.next
		}
		s.drop()
		if s.step() {
			l = s.find(k, tier, class)
		}
	}
	return nil
}

func (s *scan[T, V]) add(e *Entry[T], no int) {
	s.rows.add(snapshotRow[V]{value: s.keep(e), ticket: e.ticket, tag: e.tag, line: int32(no), weight: e.weight})
	s.lines.at(no).n++
	s.queued[e.line.tier]++
}

// drop removes the last row, which is of an entry that has left.
func (s *scan[T, V]) drop() {
	l := s.lines.at(int(s.rows.at(s.rows.n - 1).line))
	l.n--
	s.queued[l.tier]--
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
// called once. An entry takes as many steps as its tier has lines, if those are at most
// 256, and else one.
func (s *Snapshot[V]) All(running int) iter.Seq[Place[V]] {
	var ordered [Tiers][]*snapshotLine
	for i := range s.lines {
		if l := &s.lines[i]; l.inOrder && l.n > 0 {
			ordered[l.tier] = append(ordered[l.tier], l)
		}
	}
	return func(yield func(Place[V]) bool) {
		for i := range s.rows {
			row := &s.rows[i]
			l := &s.lines[row.line]
			tier := int(l.tier)
			r := Reasons{
				Weight: int(row.weight), Max: s.max, Full: int(row.weight) > s.max-running,
				Cap: s.caps[tier], AtCap: running >= s.caps[tier],
				Key: l.key, PerKey: l.perKey, AtLimit: l.atLimit, Blocked: l.blocked, KeyRuns: l.keyRuns,
				GuardIn:  s.guard.in(tier),
				Reserved: reserved(tier, s.served, s.need, running, s.max),
			}
			copy(r.Ahead[tier+1:], s.queued[tier+1:])
			r.Ahead[tier] = s.aheadInTier(row, l, ordered[tier])
			l.ahead++
			s.lines[l.flow].flowRows++
			if !yield(Place[V]{row.value, tier, r}) {
				return
			}
		}
	}
}

// aheadInTier counts the entries of a row's tier that go before it, at most; see
// Backlog.aheadInTier. The rows before this one have been explained.
func (s *Snapshot[V]) aheadInTier(row *snapshotRow[V], l *snapshotLine, ordered []*snapshotLine) int {
	if len(ordered) > maxLines {
		return s.queued[l.tier] - (l.n - l.ahead)
	}
	ahead := s.lines[l.flow].flowRows
	tag := max(row.tag, l.floor+uint64(ahead)*l.cost)
	others := 0
	for _, other := range ordered {
		if other.flow != l.flow {
			others += startsBefore(tag, other.tag, other.cost, other.n)
		}
	}
	return ahead + others
}
