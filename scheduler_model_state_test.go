package stint_test

import (
	"slices"

	"github.com/stintgo/stint"
)

// schedulerModel is a scheduler written to be obviously right: everything that waits is
// in one slice, which is scanned from end to end for each decision, and one thing happens
// after the other. The order is the one that the documentation of Scheduler and of
// internal/backlog promises.
type schedulerModel struct {
	limit        int
	caps         [stint.Tiers]int // as they were set
	perKey       int
	bound        int             // of the queue, 0 for none: arrivals that find it full are refused or blocked
	submitters   *schedulerModel // blocked submitters; nil if such arrivals are refused
	paused       bool
	closed       bool // it drains, or is closed
	killed       bool // it is closed by force
	holdsBlocked bool // it holds blocked submitters: pieces without a key are tagged on arrival, like those with a key

	running int
	keyRuns map[string]int
	waiting []*piece // in the order of arrival
	resumes []*piece // functions that have suspended their slots and want them back

	turn    int // 0 … 55
	virtual [stint.Tiers]uint64
	ends    map[fifo]uint64 // when the last piece of a FIFO ends in virtual time
	aside   map[fifo]bool   // FIFOs whose key is at its limit
}

// fifo is the FIFO of one key in one tier.
type fifo struct {
	tier int
	key  string
}

// piece is one piece of work.
type piece struct {
	fifo
	weight int
	job    bool // it runs in a goroutine that the scheduler starts for it
	state  pieceState
	err    error  // with which it ended without running
	parent *piece // the function that calls it, or waits for its outcome, if any
	await  bool   // the parent waits for its outcome, and gives its slots to what is next meanwhile
	brings *piece // the job of a blocked submitter
	ended  error  // of its context, while it runs or before it is submitted
	tag    uint64

	follows  *piece // what it continues, until that has an outcome
	follower *piece // what continues it, if anything
	catches  bool   // it continues a failure, not a value

	ahead int // what waited before it in its tier when it was queued
	turns int // that it has waited
}

type pieceState int

const (
	queued    pieceState = iota
	inside               // it has its slots
	suspended            // it has suspended them for what it calls, or wants them back
	over
)

func newSchedulerModel(limit int) *schedulerModel {
	return &schedulerModel{limit: limit, keyRuns: map[string]int{}, ends: map[fifo]uint64{}, aside: map[fifo]bool{}}
}

// share is what the keys' shares are in the model and in the scheduler.
func share(key string) int { return map[string]int{"b": 2, "c": 3}[key] }

func cost(key string) uint64 { return 1 << 20 / uint64(max(share(key), 1)) }

func (n *schedulerModel) capOf(tier int) int {
	set := func(i int) bool { return n.caps[i] > 0 }
	if !slices.ContainsFunc(n.caps[tier:], func(c int) bool { return c > 0 }) {
		return n.limit // above the topmost that is set
	}
	for i := tier; i >= 0; i-- {
		if set(i) {
			return min(n.caps[i], n.limit)
		}
	}
	for i := tier; ; i++ {
		if set(i) {
			return min(n.caps[i], n.limit)
		}
	}
}

func (n *schedulerModel) full(key string) bool {
	return key != "" && n.perKey > 0 && n.keyRuns[key] >= n.perKey
}

func (n *schedulerModel) inFIFO(l fifo) (pieces []*piece) {
	for _, p := range n.waiting {
		if p.fifo == l {
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// first is the piece of a tier that goes next: the one with the smallest tag
// among the first pieces of the FIFOs whose key has room.
func (n *schedulerModel) first(tier int) (best *piece) {
	seen := map[fifo]bool{}
	for _, p := range n.waiting { // in the order of arrival, which decides between equal tags
		if p.tier != tier || seen[p.fifo] {
			continue
		}
		seen[p.fifo] = true
		if !n.full(p.key) && (best == nil || p.tag < best.tag) {
			best = p
		}
	}
	return best
}

// chosen is the piece whose turn it is, though it may be too heavy as yet.
func (n *schedulerModel) chosen() (p *piece, guard bool) {
	if n.running >= n.limit {
		return nil, false
	}
	if n.turn%8 == 7 {
		if p := n.first(n.turn / 8); p != nil {
			return p, true
		}
	}
	for tier := stint.Tiers - 1; tier >= 0; tier-- {
		if p := n.first(tier); p != nil && n.running < n.capOf(tier) {
			return p, false
		}
	}
	return nil, false
}

// admits reports whether an arrival starts at once.
func (n *schedulerModel) admits(p *piece) bool {
	next, guard := n.chosen()
	heldBack := next != nil && n.running+next.weight > n.limit && (guard || p.tier <= next.tier)
	return !n.paused && !n.wanted() && n.first(p.tier) == nil && !heldBack && !n.full(p.key) &&
		n.running < n.capOf(p.tier) && n.running+p.weight <= n.limit
}

// tooMuch is the answer to a piece that can never run.
func (n *schedulerModel) tooMuch(p *piece) error {
	switch {
	case n.limit == 0:
		return stint.ErrNoCapacity
	case p.weight > n.limit:
		return stint.ErrTooHeavy
	default:
		return nil
	}
}

// refusal is the answer to an arrival that is not taken.
func (n *schedulerModel) refusal(p *piece) error {
	if n.closed && (p.parent == nil || n.killed) {
		return stint.ErrClosed
	}
	return n.tooMuch(p)
}

// arrive is what happens to a piece that asks for its slots.
func (n *schedulerModel) arrive(p *piece) {
	full := n.bound > 0 && len(n.waiting) >= n.bound
	n.enterQueue(p, full)
}

// enterQueue is arrive for a queue that is full or has room for p.
func (n *schedulerModel) enterQueue(p *piece, full bool) {
	switch err := n.refusal(p); {
	case err != nil:
		n.answer(p, err)
	case n.admits(p):
		n.enter(p)
		n.look(p)
	case full && n.submitters == nil:
		n.answer(p, stint.ErrQueueFull)
		n.look(p)
	case full && p.job:
		n.submitters.push(&piece{fifo: p.fifo, weight: 1, brings: p})
		n.dispatch(false)
	default:
		n.push(p)
		n.dispatch(false)
	}
}

// look dispatches after p has got its answer at once, unless p is work without a
// key that a goroutine waits for: the path without a lock cannot look. With caps
// that do not ascend there may be something to start, because what held a lower
// tier back is above its cap now; otherwise, because a key is at its limit.
func (n *schedulerModel) look(p *piece) {
	if p.job || p.key != "" {
		n.dispatch(false)
	}
}

func (n *schedulerModel) push(p *piece) {
	p.state = queued
	tagged := p.key != "" || n.holdsBlocked
	if tagged || len(n.inFIFO(p.fifo)) == 0 { // without a key it is tagged when it comes first: see take
		p.tag = max(n.virtual[p.tier], n.ends[p.fifo])
	}
	if tagged {
		n.ends[p.fifo] = p.tag + uint64(p.weight)*cost(p.key)
	}
	for _, q := range n.waiting {
		if q.tier == p.tier {
			p.ahead++
		}
	}
	n.waiting = append(n.waiting, p)
	n.setAside()
}

// enter gives p its slots.
func (n *schedulerModel) enter(p *piece) {
	p.state = inside
	n.running += p.weight
	if p.key != "" {
		n.keyRuns[p.key]++
	}
	n.setAside()
}

// exit takes its slots from p.
func (n *schedulerModel) exit(p *piece) {
	n.running -= p.weight
	if p.key != "" {
		n.keyRuns[p.key]--
	}
	n.setAside()
}

// answer ends p without its having run. The function that called it goes on.
func (n *schedulerModel) answer(p *piece, err error) {
	p.state, p.err = over, err
	if p.parent != nil && p.parent.state == suspended {
		n.comeBack(p.parent)
	}
}

// comeBack is a function that wants its slots again.
func (n *schedulerModel) comeBack(p *piece) {
	n.resumes = append(n.resumes, p)
	n.dispatch(false)
}

// finish ends a piece that is inside.
func (n *schedulerModel) finish(p *piece) {
	n.exit(p)
	p.state = over
	if p.parent != nil && !p.await {
		n.comeBack(p.parent) // first: it gets the slots of what it has called
		return
	}
	n.dispatch(true)
	if p.follower != nil {
		n.follow(p.follower, p.err)
	}
	if p.parent != nil {
		n.comeBack(p.parent)
	}
}

// follow is a continuation of what has ended with err. It takes its place in a queue that is full,
// too.
func (n *schedulerModel) follow(c *piece, err error) {
	c.follows = nil
	switch {
	case err != nil && !c.catches:
		n.answer(c, err)
	case c.ended != nil:
		n.answer(c, c.ended)
	case err == nil && c.catches:
		n.answer(c, nil)
	default:
		n.enterQueue(c, false)
	}
}

// suspend suspends the slots of a function.
func (n *schedulerModel) suspend(p *piece) {
	n.exit(p)
	p.state = suspended
	n.dispatch(true)
}

// nest has parent, which is inside, call p. The slots that parent suspends are
// handed straight down if that will do.
func (n *schedulerModel) nest(parent, p *piece) {
	p.parent = parent
	n.exit(parent)
	parent.state = suspended
	if p.weight <= parent.weight && !n.full(p.key) {
		n.enter(p)
		n.dispatch(false)
		return
	}
	n.dispatch(true)
	n.arrive(p)
}

// dispatch starts all that may start, and admits the submitters for which that makes
// room.
func (n *schedulerModel) dispatch(finished bool) {
	for {
		_, guard := n.chosen()
		switch {
		case n.startNext():
			finished = false
		case n.admitSubmitter():
		case finished && !guard && !n.paused && !n.wanted() && n.running < n.limit && n.anyEligible():
			n.endTurn() // a finish at which it is the caps that allow nothing
			finished = false
		default:
			return
		}
	}
}

// startNext starts one thing if any may start.
func (n *schedulerModel) startNext() bool {
	if p, held := n.nextResume(); p != nil {
		n.resumes = slices.DeleteFunc(n.resumes, func(q *piece) bool { return p == q })
		n.enter(p)
		return true
	} else if held || n.paused {
		return false
	}
	p, _ := n.chosen()
	if p == nil || n.running+p.weight > n.limit {
		return false
	}
	n.start(p)
	return true
}

// nextResume is the function that has its slots back next; held, that one
// waits for enough of them.
func (n *schedulerModel) nextResume() (p *piece, held bool) {
	for _, p := range n.resumes {
		if n.full(p.key) {
			continue
		}
		if n.running+p.weight <= n.limit || n.running == 0 {
			return p, false
		}
		return nil, true
	}
	return nil, false
}

// wanted reports whether a function lacks nothing but slots to go on.
func (n *schedulerModel) wanted() bool {
	p, held := n.nextResume()
	return p != nil || held
}

func (n *schedulerModel) anyEligible() bool {
	return slices.ContainsFunc(n.waiting, func(p *piece) bool { return !n.full(p.key) })
}

func (n *schedulerModel) start(p *piece) {
	// The time of the tier moves on at least as far as a fair server of all lines
	// that wait would have come.
	n.virtual[p.tier] = max(p.tag, n.virtual[p.tier]+uint64(p.weight)<<20/n.shares(p.tier))
	n.take(p, p.tag+uint64(p.weight)*cost(p.key))
	n.endTurn()
	n.enter(p)
}

// shares adds up the shares of the lines of a tier that may start.
func (n *schedulerModel) shares(tier int) (sum uint64) {
	seen := map[fifo]bool{}
	for _, p := range n.waiting {
		if p.tier == tier && !seen[p.fifo] && !n.full(p.key) {
			seen[p.fifo] = true
			sum += uint64(max(share(p.key), 1))
		}
	}
	return sum
}

func (n *schedulerModel) endTurn() {
	n.turn = (n.turn + 1) % 56
	for _, p := range n.waiting {
		p.turns++
	}
}

// take takes p out of the queue; left is where in virtual time it leaves its
// FIFO.
func (n *schedulerModel) take(p *piece, left uint64) {
	rest := n.inFIFO(p.fifo)
	if rest[len(rest)-1] == p {
		n.ends[p.fifo] = left
	}
	if rest[0] == p && len(rest) > 1 {
		rest[1].tag = max(rest[1].tag, left)
	}
	n.waiting = slices.DeleteFunc(n.waiting, func(q *piece) bool { return q == p })
	if !slices.ContainsFunc(n.waiting, func(q *piece) bool { return q.tier == p.tier }) {
		for l := range n.ends {
			if l.tier == p.tier {
				delete(n.ends, l) // an empty tier starts afresh
			}
		}
	}
}

// move has p arrive once more, in another tier.
func (n *schedulerModel) move(p *piece, tier int) {
	if tier == p.tier {
		return
	}
	n.take(p, p.tag)
	p.tier, p.tag, p.ahead, p.turns = tier, 0, 0, 0
	n.push(p)
	n.setAside()
	n.dispatch(false)
}

// withdraw takes queued pieces out, the last first, so that their lines are as
// if they had not come; each gets its answer. Then it starts what they held
// back.
func (n *schedulerModel) withdraw(why func(*piece) error) (taken int) {
	for _, p := range slices.Backward(slices.Clone(n.waiting)) {
		if err := why(p); err != nil {
			n.take(p, p.tag)
			p.state, p.err = over, err
			taken++
			if p.parent != nil {
				defer n.answer(p, err)
			}
		}
	}
	n.dispatch(false)
	return taken
}

// setAside notes the FIFOs whose key is at its limit. Those that have room
// again do not get that time back: their first pieces count as queued no
// earlier than now.
func (n *schedulerModel) setAside() {
	for _, p := range n.waiting {
		if n.full(p.key) {
			n.aside[p.fifo] = true
		}
	}
	for l := range n.aside {
		if n.full(l.key) {
			continue
		}
		delete(n.aside, l)
		if rest := n.inFIFO(l); len(rest) > 0 {
			rest[0].tag = max(rest[0].tag, n.virtual[l.tier])
		}
	}
}
