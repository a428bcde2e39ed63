package machine

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
)

// total is the limit of tasks that run in all queues together. Queues compete for it,
// so a claim of one queue may have to leave a free slot to another one, and the end of
// a task of one queue has to wake the workers of another one.
//
// A queue that is refused a start for the limit queues up, once. As slots come free,
// each is reserved for the queue that has waited longest, and its workers get a
// signal: nobody else wakes up. Other queues start tasks on slots that are free and
// not reserved. So of each queue that was refused before, at most one task starts
// before the next one of a queue that is refused now, whatever else is submitted
// where. A reservation lapses after reserved, or when the queue has nothing to start
// any more: a queue without a worker holds a slot for no longer, and holds it again
// only when it has claimed again.
type total struct {
	limit    int // 0: there is none
	running  int
	waiting  list.List // of lines that have been refused, the first to be refused first
	reserved list.List // of lines that have a slot reserved, the first to lapse first
}

// reservedFor is for how long a slot is reserved: long enough for a signal to reach a
// worker on another host, and for its claim to come back.
const reservedFor = time.Second

// place is where a queue stands in the order of a total. The zero value is nowhere.
type place struct {
	in    *list.List
	at    *list.Element
	until int64 // when the reservation lapses
}

// free is how many slots are free, reserved ones included.
func (t *total) free() int { return t.limit - t.running }

// mayStart reports whether the total lets a queue start a task.
func (t *total) mayStart(l *line) bool {
	if t.limit == 0 {
		return true
	}
	if l.place.in == &t.reserved {
		return t.free() > 0
	}
	return t.free() > t.reserved.Len()
}

// leave takes a queue out of the order, and with it a slot that is reserved for it.
func (t *total) leave(l *line) {
	if l.place.in != nil {
		l.place.in.Remove(l.place.at)
		l.place = place{}
	}
}

// refuse queues up a queue that may not start a task. It returns when a reservation
// lapses, if the free slots are reserved; else a signal says when there is one.
func (m *Machine) refuse(l *line) (at time.Time) {
	t := &m.total
	if l.place.in == nil {
		l.place = place{in: &t.waiting, at: t.waiting.PushBack(l)}
	}
	if first := t.reserved.Front(); first != nil && t.free() > 0 {
		return timeOf(first.Value.(*line).place.until)
	}
	return time.Time{}
}

// offer reserves the slots that are free for the queues that have waited longest, and
// tells those.
func (m *Machine) offer() {
	t := &m.total
	for first := t.waiting.Front(); first != nil && t.reserved.Len() < t.free(); first = t.waiting.Front() {
		l := first.Value.(*line)
		t.leave(l)
		if !m.startable(l) {
			continue
		}
		l.place = place{&t.reserved, t.reserved.PushBack(l), m.clock.after(reservedFor)}
		l.signal()
	}
}

// lapse ends reservations that have lapsed, and returns when the next one does, 0 if
// there is none.
func (m *Machine) lapse() (next int64) {
	t := &m.total
	for first := t.reserved.Front(); first != nil; first = t.reserved.Front() {
		l := first.Value.(*line)
		if l.place.until > m.clock.now {
			return l.place.until
		}
		t.leave(l)
		m.offer()
	}
	return 0
}

// startable reports whether a queue has a task that the total alone may keep from
// starting. Its rate counts as one that allows a start: see yield.
func (m *Machine) startable(l *line) bool {
	return l.settings.Paused == nil && l.order.Peek(l.running) != nil
}

// yield gives up the place of a queue that has claimed and could not have started a
// task, whatever the total.
func (m *Machine) yield(l *line) {
	if l.place.in == nil {
		return
	}
	if rate := l.limits.rate; !m.startable(l) || rate.limited() && rate.from(l.arrival) > m.clock.now {
		m.total.leave(l)
		m.offer()
	}
}

// taken counts a slot that a task of a queue and a key has taken.
func (m *Machine) taken(l *line, key string) {
	l.running++
	m.total.running++
	m.total.leave(l)
	m.keyTaken(key)
}

// vacated counts a slot that a task of a queue and a key has vacated.
func (m *Machine) vacated(l *line, key string) {
	l.running--
	m.total.running--
	l.order.Finish(key)
	m.keyVacated(key)
	m.offer()
}

// limitsAll reports whether the end of a lease may be what lets a task of another
// queue start.
func (m *Machine) limitsAll() bool { return m.total.limit > 0 || m.keyTotals.limited() }

// keyTotal is what there is of a key in all queues together. It is kept only while
// keys have totals.
type keyTotal struct {
	running int
	lines   map[*line]struct{} // in which tasks of the key are queued
}

// keyTotals are the limits of tasks of one key that run in all queues together. A key
// at its limit is set aside in each queue that has tasks of it.
type keyTotals struct {
	limit    int            // of each key; 0 is none
	own      map[string]int // of single keys, instead of that
	keys     map[string]*keyTotal
	keysPeak int // as shrink.Delete has it
}

// limited reports whether any key has a limit.
func (k *keyTotals) limited() bool { return k.limit > 0 || len(k.own) > 0 }

func (k *keyTotals) limitOf(key string) int {
	if limit, ok := k.own[key]; ok {
		return limit
	}
	return k.limit
}

// full reports whether as many tasks of a key run as may.
func (k *keyTotals) full(key string) bool {
	of := k.keys[key]
	return of != nil && k.limitOf(key) > 0 && of.running >= k.limitOf(key)
}

func (k *keyTotals) of(key string) *keyTotal {
	of := k.keys[key]
	if of == nil {
		of = &keyTotal{lines: make(map[*line]struct{})}
		k.keys[key] = of
	}
	return of
}

// forget drops what is kept of a key of which there is nothing any more.
func (k *keyTotals) forget(key string) {
	if of := k.keys[key]; of != nil && of.running == 0 && len(of.lines) == 0 {
		shrink.Delete(&k.keys, &k.keysPeak, key)
	}
}

// keyQueued notes that a queue has a task of a key to start.
func (m *Machine) keyQueued(l *line, key string) {
	if key == "" || !m.keyTotals.limited() {
		return
	}
	m.keyTotals.of(key).lines[l] = struct{}{}
	if m.keyTotals.full(key) {
		l.order.Block(key, causeTotal)
	}
}

// keyUnqueued notes that a queue has one task of a key less to start.
func (m *Machine) keyUnqueued(l *line, key string) {
	of := m.keyTotals.keys[key]
	if of == nil || l.order.QueuedBy(key) > 0 {
		return
	}
	delete(of.lines, l)
	l.order.Unblock(key, causeTotal)
	m.keyTotals.forget(key)
}

func (m *Machine) keyTaken(key string) {
	if key == "" || !m.keyTotals.limited() {
		return
	}
	of := m.keyTotals.of(key)
	of.running++
	if m.keyTotals.full(key) {
		for l := range of.lines {
			l.order.Block(key, causeTotal)
		}
	}
}

func (m *Machine) keyVacated(key string) {
	of := m.keyTotals.keys[key]
	if of == nil {
		return
	}
	was := m.keyTotals.full(key)
	of.running--
	if was && !m.keyTotals.full(key) {
		byNumber := func(a, b *line) int { return cmp.Compare(a.no, b.no) }
		for _, l := range slices.SortedFunc(maps.Keys(of.lines), byNumber) { // always in the same order
			l.order.Unblock(key, causeTotal)
			l.signal()
		}
	}
	m.keyTotals.forget(key)
}

// configureTotals puts what is set for all queues together into force.
func (m *Machine) configureTotals() {
	all := m.settings[""]
	m.totals = inForce(&all, &queue.Configured{}, totalFields())
	m.total.limit = m.totals.Total
	for m.total.reserved.Len() > 0 { // the order stays; what is free may be less
		last := m.total.reserved.Back().Value.(*line)
		m.total.leave(last)
		last.place = place{in: &m.total.waiting, at: m.total.waiting.PushFront(last)}
	}
	if m.total.limit == 0 {
		for first := m.total.waiting.Front(); first != nil; first = m.total.waiting.Front() {
			m.total.leave(first.Value.(*line))
		}
	}
	m.offer()
	m.configureKeyTotals(all.Keys)
}

// totalFields are the fields that count for all queues together.
func totalFields() []queue.Field { return []queue.Field{queue.FieldTotal, queue.FieldTotalPerKey} }

// configureKeyTotals takes stock of all keys anew if their limits are others.
func (m *Machine) configureKeyTotals(keys map[string]queue.Layers) {
	var own map[string]int
	for key, layers := range keys {
		if value, _, ok := layers.Value(queue.FieldTotal); ok {
			if own == nil {
				own = make(map[string]int)
			}
			own[key] = value.Total
		}
	}
	t := &m.keyTotals
	if t.limit == m.totals.TotalPerKey && maps.Equal(t.own, own) {
		return
	}
	for key, of := range t.keys {
		for l := range of.lines {
			l.order.Unblock(key, causeTotal)
		}
	}
	*t = keyTotals{limit: m.totals.TotalPerKey, own: own, keys: make(map[string]*keyTotal)}
	if !t.limited() {
		return
	}
	for _, e := range m.leases.all {
		m.keyTaken(e.of.lease.row.Key)
	}
	for _, l := range m.queues.byName {
		l.order.EachQueued(func(key string) { t.of(key).lines[l] = struct{}{} })
	}
	for key, of := range t.keys {
		for l := range of.lines {
			if t.full(key) {
				l.order.Block(key, causeTotal)
			}
		}
	}
}

// busiest are the queues, at most ten, of which most tasks run that count.
func busiest(running map[string]int) map[string]int {
	const most = 10
	if len(running) <= most {
		return running
	}
	names := slices.SortedFunc(maps.Keys(running), func(a, b string) int {
		return cmp.Or(cmp.Compare(running[b], running[a]), cmp.Compare(a, b))
	})
	top := make(map[string]int, most)
	for _, name := range names[:most] {
		top[name] = running[name]
	}
	return top
}

// running counts what runs, by queue.
func (m *Machine) running() map[string]int {
	running := make(map[string]int)
	for _, l := range m.queues.byName {
		if l.running > 0 {
			running[l.name] = l.running
		}
	}
	return running
}

// runningOf counts what runs of a key, by queue.
func (m *Machine) runningOf(key string) map[string]int {
	running := make(map[string]int)
	for _, l := range m.queues.byName {
		if n := l.order.Running(key); n > 0 {
			running[l.name] = n
		}
	}
	return running
}
