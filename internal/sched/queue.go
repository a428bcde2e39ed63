package sched

import (
	"cmp"
	"slices"

	"github.com/stintgo/stint/internal/backlog"
)

// queue is the work that waits for slots, in the order of the policy. Entries with a key
// are in the policy itself. Work without a key is an item in the fifo of its tier, for
// which one entry stands in the policy: see [backlog.Run].
//
// While a single fifo is all that waits, its first item is next, and the policy is not
// asked: starts are counted, and charged to the policy in one go before it is needed
// again.
type queue struct {
	policy *backlog.Backlog[*entry] // access it by log, which brings it up to date
	runs   [Tiers]run
	alone  int // the tier of the only fifo, if nothing else waits and no cap matters; else -1
	most   int // no entry in the queue, or of a blocked submitter, needs more slots
	spare  spares
	clock  stamps
	pace   pace
	jobs   jobs
}

// run is the work of one tier without a key.
type run struct {
	fifo

	started uint64              // starts that the policy has not been charged for
	run     backlog.Run[*entry] // the fifo's entry in the policy; its value is nil
}

// log returns the policy, brought up to date.
func (q *queue) log() *backlog.Backlog[*entry] {
	if q.alone >= 0 {
		if r := &q.runs[q.alone]; r.started > 0 {
			n, first := r.started, r.first()
			r.started = 0
			r.run.StartMany(n, first.weight(), uint64(first.since))
		}
	}
	return q.policy
}

// look updates alone after a change of what waits or of a limit.
func (q *queue) look() { q.alone = q.log().Alone() }

// empty reports whether nothing waits.
func (q *queue) empty() bool { return q.alone < 0 && q.policy.Empty() }

// simple returns the only fifo if its first item needs one slot, else nil.
func (q *queue) simple() *run {
	if q.alone < 0 {
		return nil
	}
	if r := &q.runs[q.alone]; r.first().weight() == 1 {
		return r
	}
	return nil
}

// closed returns a bit for each tier whose arrivals must queue when running slots are in
// use.
func (q *queue) closed(running int) uint8 {
	if q.simple() != nil {
		return 1 << q.alone
	}
	return q.log().Closed(running)
}

// may reports whether anything may start when running slots are in use.
func (q *queue) may(running int) bool {
	_, ok := q.peek(running)
	return ok
}

// piece is a piece of work in the queue.
type piece struct {
	it     *item  // in the fifo of its tier; nil with a key
	place  uint64 // of the item in the fifo
	x      *entry // nil for an item without an entry
	tier   int8
	weight int32
}

// isJob reports whether a worker runs it.
func (p *piece) isJob() bool { return p.x == nil || p.x.job != nil }

func (p *piece) left() bool { return p.x != nil && p.x.left() }

// entry returns the entry of an item, nil if it has none.
func (it *item) entry() *entry {
	x, _ := it.job.(*entry)
	return x
}

// weight returns the number of slots that an item needs.
func (it *item) weight() int {
	if x := it.entry(); x != nil {
		return int(x.Weight)
	}
	return 1
}

// asJob returns an item without an entry as a job to run.
func (it *item) asJob() job {
	j := job{Job: it.job}
	if it.cancellation != nil {
		j.group = it.cancellation.group
	}
	return j
}

// waiting returns a bit for each tier with something that waits for a slot.
func (q *queue) waiting() uint8 {
	if q.alone >= 0 {
		return 1 << q.alone
	}
	return q.policy.Eligible()
}

// read reads the clock.
func (q *queue) read() int64 {
	at := q.clock.read()
	q.pace.read(at, q.waiting(), q.policy.Bounds().Max())
	return at
}

// arrives returns the stamp of an arrival that is about to be queued: exact if nothing
// waits.
func (q *queue) arrives(tier int) int64 {
	q.clock.last++
	if q.clock.arrivals.due() || q.empty() {
		q.read()
	}
	q.pace.arrive(tier, q.policy.Bounds().Max())
	return q.clock.last
}

// finishes returns the time of a release or of a function's start.
func (q *queue) finishes() int64 {
	if q.clock.finishes.due() {
		return q.read()
	}
	return q.clock.last
}

// put queues an item.
func (q *queue) put(it item, tier, weight int) (place uint64) {
	r := &q.runs[tier]
	place = r.put(it, &q.spare)
	if r.n == 1 {
		r.run.PushTo(q.log(), backlog.Arrival{Tier: int8(tier), Weight: int32(weight)}, uint64(it.since), &r.n)
		q.look()
	}
	return place
}

// push queues an entry, which w removes when its context ends.
func (q *queue) push(x *entry, w *cancellation) {
	x.waits = true
	q.most = max(q.most, int(x.Weight))
	if x.Key != "" {
		q.log().PushAt(&x.node, x.queued(), uint64(x.since))
		q.alone = -1
		w.add(x)
		return
	}
	x.place = q.put(item{job: x, cancellation: w, since: x.since}, int(x.Tier), int(x.Weight))
	w.addItem(int(x.Tier), x.place)
}

// peek returns the piece that starts next when running slots are in use, if one may start.
func (q *queue) peek(running int) (p piece, ok bool) {
	if r := q.simple(); r != nil {
		if running >= q.policy.Bounds().Max() {
			return piece{}, false
		}
		return r.piece(q.alone, r.head), true
	}
	n := q.log().Peek(running)
	switch {
	case n == nil:
		return piece{}, false
	case n.Value != nil:
		return piece{x: n.Value, tier: n.Value.Tier, weight: n.Value.Weight}, true
	default:
		r := &q.runs[n.Tier()]
		return r.piece(n.Tier(), r.head), true
	}
}

// piece returns the piece at a place of the run of a tier.
func (r *run) piece(tier int, place uint64) piece {
	it := r.at(place)
	if x := it.entry(); x != nil {
		return piece{it: it, place: place, x: x, tier: int8(tier), weight: x.Weight}
	}
	return piece{it: it, place: place, tier: int8(tier), weight: 1}
}

// start removes a piece that peek has returned: it runs now.
func (q *queue) start(p piece) {
	if p.x != nil {
		p.x.waits = false
	}
	if p.it == nil {
		p.x.cancellation.remove(p.x)
		q.log().Start(&p.x.node)
		q.look()
		return
	}
	p.it.cancellation.removeItem(int(p.tier))
	r := &q.runs[p.tier]
	if q.alone >= 0 && r.n > 1 && p.weight == 1 {
		r.drop(&q.spare)
		r.started++
		return
	}
	q.log()
	r.drop(&q.spare)
	if r.n == 0 {
		q.policy.Start(&r.run.Entry)
	} else {
		following := r.first()
		r.run.StartFirst(following.weight(), uint64(following.since))
	}
	q.look()
}

// shift is start for the first item of the only fifo, if it is not the last and has no
// entry.
func (q *queue) shift(r *run) job {
	it := r.first()
	j := it.asJob()
	it.cancellation.removeItem(q.alone)
	r.drop(&q.spare)
	r.started++
	return j
}

// entered returns the piece of a waiting entry.
func (q *queue) entered(x *entry) piece {
	if x.Key == "" {
		return q.runs[x.Tier].piece(int(x.Tier), x.place)
	}
	return piece{x: x, tier: x.Tier, weight: x.Weight}
}

// remove removes a piece that does not start.
func (q *queue) remove(p piece) {
	if p.x != nil {
		p.x.waits = false
	}
	if p.it == nil {
		p.x.cancellation.remove(p.x)
		q.log().Remove(&p.x.node)
		q.look()
		return
	}
	p.it.cancellation.removeItem(int(p.tier))
	r := &q.runs[p.tier]
	first := p.place == r.head
	q.log()
	r.remove(p.place, &q.spare)
	switch {
	case r.n == 0:
		q.policy.Remove(&r.run.Entry)
	case first:
		following := r.first()
		r.run.DropFirst(following.weight(), uint64(following.since))
	}
	q.look()
}

// why explains the wait of a piece when running slots are in use.
func (q *queue) why(p piece, running int) backlog.Reasons {
	log := q.log()
	if p.it == nil {
		return log.Why(&p.x.node, running)
	}
	r := &q.runs[p.tier]
	return r.run.Why(r.ahead(p.place), int(p.weight), running)
}

// all returns everything that waits, in the order of arrival.
func (q *queue) all() []piece {
	all := make([]piece, 0, q.log().Len())
	for _, n := range q.policy.Entries() {
		if n.Value != nil {
			all = append(all, q.entered(n.Value))
		}
	}
	for tier := range q.runs {
		r := &q.runs[tier]
		for place, ok := r.next(0); ok; place, ok = r.next(place + 1) {
			all = append(all, r.piece(tier, place))
		}
	}
	slices.SortFunc(all, byArrival)
	return all
}

func byArrival(a, b piece) int { return cmp.Compare(a.since(), b.since()) }

// since returns when a piece arrived, or was moved to its tier.
func (p *piece) since() int64 {
	if p.it != nil {
		return p.it.since
	}
	return p.x.since
}

// behind reports whether an arrival is queued behind others like it. Then it cannot start
// now, and nothing else may start because of it.
func (q *queue) behind(a Ask) bool { return a.Key == "" && q.runs[a.Tier].n > 0 }

// pieceAt returns the first item at or behind a place, of the run that rep represents, if it arrived
// by last.
func (q *queue) pieceAt(rep *node, at uint64, last int64) (p backlog.Piece[int64], ok bool) {
	r := &q.runs[rep.Tier()]
	place, ok := r.next(at)
	if !ok || r.at(place).since > last {
		return p, false
	}
	here := r.piece(rep.Tier(), place)
	return backlog.Piece[int64]{
		Value: here.arrived(), Weight: int(here.weight), Ticket: uint64(here.since()), Next: place + 1,
	}, true
}
