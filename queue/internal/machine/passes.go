package machine

import (
	"container/list"
	"time"

	"github.com/stintgo/stint/queue/internal/journal"
)

const (
	visitsPerStep = 100 // waiters that one step visits, and tasks that one step of a claim expires
	visitsPerPass = 25  // waiters of one list that drain visits before it turns to the next list

	// drainPause is how long drain sleeps between two steps. Without it a caller that
	// has become runnable waits for tens of milliseconds where there are few
	// processors: drain and the goroutines it wakes keep one busy, and what works in
	// the background (collector, compaction) may use all of its time slice on the
	// other. A processor that becomes idle takes the caller over.
	drainPause = 500 * time.Microsecond
)

// passes visits tasks that wait for something, in parts. The end of one task, or of a
// batch, may concern a million tasks that wait for it. A step never visits all of them:
// it makes the first visitsPerStep visits itself, so that a few waiters go on at once,
// and leaves the rest to a goroutine, drain, which makes as many in each of its own
// steps. Callers get the lock between two steps. The caller of each method holds the lock
// of the machine.
//
// No row records a release that is not complete. Open derives it: a task that is Held
// although nothing holds it is let go. A cancellation cannot be derived, because its
// cause is forgotten; see cascades.go.
type passes struct {
	journal *journal.Journal

	left     int        // visits that this step may still make
	fresh    []*waiters // lists whose passes this step has started
	queued   []*waiters // lists whose passes are left to drain
	draining bool       // drain runs

	// visit makes one visit; it may remove e from w.
	visit func(w *waiters, e *list.Element)
}

// visit is what a pass does with each of its tasks.
type visit uint8

const (
	visitAdjust  visit = iota // holds the task or lets it go on, as its waits demand now
	visitRelease              // ends its wait for the success of another task
	visitCancel               // cancels it for the cascade of its list
)

// waiters are tasks that wait for the same thing, in the order in which they began
// to. A pass goes through them in parts.
type waiters struct {
	list.List // of *task

	// The pass, if queued is true. Its end is a nil next.
	queued bool
	next   *list.Element
	visit  visit // what the pass does with each task

	cascade *cascade // if these tasks are to be cancelled
}

// begin allows a step its visits.
func (p *passes) begin() { p.left = visitsPerStep }

// spend counts a visit of another kind, such as a task that a claim expires.
func (p *passes) spend() { p.left-- }

// spent reports whether this step may make no more visits.
func (p *passes) spent() bool { return p.left <= 0 }

// leave ends a step: it leaves the passes that are not complete to drain, and reports
// whether drain has to be started.
func (p *passes) leave() (start bool) {
	p.queued = append(p.queued, p.fresh...)
	p.fresh = nil
	return len(p.queued) > 0 && !p.draining
}

// start starts a pass over a list, from its first task on. If a pass over it is under
// way, it starts again.
func (p *passes) start(w *waiters, do visit) {
	w.next, w.visit = w.Front(), do
	if w.next == nil || w.queued {
		return
	}
	w.queued = true
	p.fresh = append(p.fresh, w)
}

// visitSome makes at most n visits of a pass, and returns how many it did not use.
func (p *passes) visitSome(w *waiters, n int) int {
	for ; n > 0 && w.next != nil; n-- {
		e := w.next
		w.next = e.Next()
		p.visit(w, e)
	}
	w.queued = w.next != nil
	return n
}

// advance makes visits of the passes that this step has started, as many as a step
// may still make.
func (p *passes) advance() {
	for len(p.fresh) > 0 && p.left > 0 && p.journal.Failed() == nil {
		w := p.fresh[0]
		p.left = p.visitSome(w, p.left)
		if !w.queued {
			p.fresh = p.fresh[1:]
		}
	}
}

// drainStep makes visits of all passes in turn, so that a short one does not wait for
// a long one.
func (p *passes) drainStep() {
	for p.left > 0 && len(p.queued) > 0 && p.journal.Failed() == nil {
		w := p.queued[0]
		p.queued[0] = nil
		p.queued = p.queued[1:]
		n := min(visitsPerPass, p.left)
		p.left -= n - p.visitSome(w, n)
		if w.queued {
			p.queued = append(p.queued, w)
		}
	}
}
