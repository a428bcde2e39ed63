package sched

import (
	"time"

	"github.com/stintgo/stint/internal/backlog"
)

// Stats is the state of an engine at one moment.
type Stats struct {
	Limit     int
	Running   int // slots in use
	Queued    int // entries that wait
	QueuedBy  [Tiers]int
	Caps      [Tiers]int // effective
	PerKey    int
	Blocked   int // submitters that wait for room
	Suspended int // functions that have suspended their slots
	Paused    bool
	Closed    bool
}

// Stats returns the present state. It calls also at the same moment, with the lock held.
func (e *Engine) Stats(also func()) Stats {
	e.lock()
	defer e.unlock()
	log := e.queue.log()
	bounds := log.Bounds()
	s := Stats{
		Limit: bounds.Max(), Running: e.gate.running(), Queued: log.Len(), Caps: bounds.Caps(), PerKey: log.Keys().PerKey(),
		Suspended: e.suspended.n, Paused: e.limits.paused != nil, Closed: e.closed,
	}
	for tier := range Tiers {
		s.QueuedBy[tier] = log.LenTier(tier)
	}
	if e.blocked.any() {
		s.Blocked = e.blocked.log.Len()
	}
	also()
	return s
}

// Present is what explains a wait besides the policy, at one moment.
type Present struct {
	Running  int
	Pause    *Pause
	Forecast Forecast // for waiting work; not set for an arrival
	Holders  []Holder // the work that has slots, in no order, if the engine keeps it
	Resuming int      // functions that wait to resume and lack only slots: those that come free go to them first
}

// present returns the present state. The lock is held.
func (e *Engine) present() Present {
	p := Present{
		Running: e.gate.running(), Holders: e.holders.list(), Resuming: e.suspended.resumes.room.n,
	}
	if e.limits.paused != nil {
		p.Pause = &Pause{e.limits.paused.By, byPresent(e.limits.paused.Since)}
	}
	return p
}

// Wait is a piece of work that waits.
type Wait struct {
	Tier  int
	Since time.Time
	Why   backlog.Reasons
	Full  int // entries in the bounded queue that blocks the submitter; else 0
}

// WhyNot is why an arrival would not start now.
type WhyNot struct {
	Present

	Closed bool
	Starts bool            // it would start
	Why    backlog.Reasons // set if it would not
	Full   int             // entries in a bounded queue that is full; else 0
}

// Why returns what would keep an arrival from starting now. It calls also at the same
// moment, with the lock held.
func (e *Engine) Why(a Ask, also func()) (w WhyNot) {
	e.lock()
	defer e.unlock()
	e.startWaiting()
	also()
	w.Present, w.Closed = e.present(), e.closed
	if w.Starts = e.admits(a, w.Running); w.Starts {
		return w
	}
	w.Why = e.queue.log().WhyNot(int(a.Tier), a.Key, int(a.Weight), w.Running)
	if e.full() {
		w.Full = e.queue.log().Len()
	}
	return w
}

// Waiting calls each for all that waits, in the order of arrival, and then for the
// blocked submitters. n is approximately how many wait. It copies what waits in pieces:
// see [backlog.Scan].
func (e *Engine) Waiting(also func(), each func(n int, p *Present, w *Wait)) {
	e.lock()
	e.startWaiting()
	last := e.queue.clock.last
	e.unlock()
	queued := backlog.ScanRuns(e.queue.policy, engineLock{e}, arrivedNode,
		func(rep *node, at uint64) (backlog.Piece[int64], bool) { return e.queue.pieceAt(rep, at, last) })
	present := e.presentWith(also)
	for p := range queued.All(present.Running) {
		each(queued.Len(), &present, &Wait{Tier: p.Tier, Since: e.queue.clock.time(p.Value), Why: p.Reasons})
	}
	if e.blocked.log == nil {
		return
	}
	full := 0
	blocked := backlog.Scan(e.blocked.log, engineLock{e}, func(n *node) Wait {
		full = e.queue.log().Len()
		a := n.Value.Ask
		return Wait{
			Since: e.queue.clock.time(n.Value.since), Full: full,
			Why: e.queue.log().WhyNot(int(a.Tier), a.Key, int(a.Weight), e.gate.running()),
		}
	})
	for p := range blocked.All(0) {
		w := &p.Value
		w.Tier = p.Tier
		for tier, ahead := range p.Reasons.Ahead {
			w.Why.Ahead[tier] += ahead
		}
		each(queued.Len(), &present, w)
	}
}

// presentWith returns the present after a call of also, which may be code of the user: a panic
// leaves no lock behind.
func (e *Engine) presentWith(also func()) Present {
	e.lock()
	defer e.unlock()
	p := e.present()
	p.Forecast = e.forecast()
	also()
	return p
}

// Why explains the wait of a queued function. It calls also at the same moment, with the
// lock held.
func (c *Call) Why(also func()) (p Present, w Wait, waits bool) {
	e := c.Engine()
	e.lock()
	defer e.unlock()
	e.startWaiting()
	piece, ok := c.waiting()
	if !ok {
		return p, w, false
	}
	also()
	p = e.present()
	p.Forecast = e.forecast()
	w = Wait{Tier: int(piece.tier), Since: e.queue.clock.time(piece.arrived())}
	w.Why = e.queue.why(piece, p.Running)
	return p, w, true
}

// engineLock is the lock of an engine as a [sync.Locker].
type engineLock struct{ e *Engine }

// Lock takes the lock, and brings the policy up to date.
func (l engineLock) Lock() {
	l.e.lock()
	l.e.queue.log()
}

func (l engineLock) Unlock() { l.e.unlock() }
