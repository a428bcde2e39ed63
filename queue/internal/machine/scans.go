package machine

import (
	"container/list"
	"time"

	"github.com/stintgo/stint/queue/internal/journal"
)

const (
	visitsPerStep = 100 // waiters that a step visits, plus tasks that a step of a claim expires
	// bytesPerStep limits the rows of tasks that a step reads and writes: one that has reached it
	// begins no further task. Without it, a step of a few hundred tasks of 1 MiB keeps all other
	// calls waiting for seconds.
	bytesPerStep  = 4 << 20
	visitsPerTurn = 25 // waiters of one list that drain visits before it continues with the next list

	// drainPause is the sleep of drain between two steps. Without it, on a machine with
	// two processors, a runnable caller waits for tens of milliseconds: drain and the
	// goroutines that it wakes keep one processor busy, and background work (garbage
	// collection, compaction) may use its whole time slice on the other one.
	drainPause = 500 * time.Microsecond
)

// scans visits the tasks of lists of waiters, and bounds the work of each step: the visits,
// and the bytes of rows for everything that is made in several steps. A million
// tasks may wait for the end of one task or batch, so a step never visits all of them:
// it makes the first visitsPerStep visits itself, so that short lists are completed at
// once, and leaves the others to a goroutine, drain, which makes visitsPerStep visits
// in each of its own steps. Both stop earlier if the rows are large. Callers can take the
// lock between two steps. The caller of each method holds the lock of the machine.
//
// A release that is not complete has no row, because Open can derive it: it releases
// every Held task that nothing holds. A cancellation cannot be derived, because the
// forgotten task that caused it has no row; see cascades.go.
type scans struct {
	journal *journal.Journal
	rows    *taskRows

	left     int        // visits that this step may still make
	from     int        // rows.bytes when this step began
	fresh    []*waiters // lists whose scans this step has started
	queued   []*waiters // lists whose scans drain continues
	draining bool       // the goroutine drain runs

	// visit makes one visit, to the task of e. It may remove e from w.
	visit func(w *waiters, e *list.Element)
}

// visit is what a scan does with each task of its list.
type visit uint8

const (
	visitAdjust  visit = iota // holds or releases the task, as its waits are now
	visitRelease              // ends the wait of the task for the success of another task
	visitCancel               // cancels the task for the cascade of its list
)

// waiters is a list of tasks that wait for the same thing, in the order in which they
// joined it, with the state of its scan.
type waiters struct {
	list.List // of *task

	queued bool          // a scan is in fresh or in queued
	next   *list.Element // the next element to visit; nil at the end of the scan
	visit  visit         // what the scan does with each task

	cascade *cascade // why the tasks are cancelled; nil if they are not
}

// endsWith reports whether t is the last task of the list.
func (w *waiters) endsWith(t *task) bool {
	last := w.Back()
	return last != nil && last.Value.(*task) == t
}

// begin begins a step, which may make visitsPerStep visits.
func (p *scans) begin() { p.left, p.from = visitsPerStep, p.rows.bytes }

// spend counts a task that a claim expires or holds as a visit.
func (p *scans) spend() { p.left-- }

// full reports whether this step has read and written as many bytes as it may.
func (p *scans) full() bool { return p.rows.bytes-p.from >= bytesPerStep }

// spent reports whether this step may make no more visits.
func (p *scans) spent() bool { return p.left <= 0 || p.full() }

// leave ends a step: it queues the scans that are not complete for drain, and reports
// whether the caller has to start drain.
func (p *scans) leave() (start bool) {
	p.queued = append(p.queued, p.fresh...)
	p.fresh = nil
	return len(p.queued) > 0 && !p.draining
}

// start starts a scan of a list at its first task. If the list is being scanned, its scan
// starts again.
func (p *scans) start(w *waiters, do visit) {
	w.next, w.visit = w.Front(), do
	if w.next == nil || w.queued {
		return
	}
	w.queued = true
	p.fresh = append(p.fresh, w)
}

// visitSome makes at most n visits of a scan, and returns n less the visits made.
func (p *scans) visitSome(w *waiters, n int) int {
	for ; n > 0 && w.next != nil && !p.full(); n-- {
		e := w.next
		w.next = e.Next()
		p.visit(w, e)
	}
	w.queued = w.next != nil
	return n
}

// advance continues the scans that this step has started, up to the visits that the step
// may still make.
func (p *scans) advance() {
	for len(p.fresh) > 0 && !p.spent() && p.journal.Failed() == nil {
		w := p.fresh[0]
		p.left = p.visitSome(w, p.left)
		if !w.queued {
			p.fresh = p.fresh[1:]
		}
	}
}

// drainStep continues the queued scans in round-robin order, so that a short scan does
// not wait for a long one.
func (p *scans) drainStep() {
	for !p.spent() && len(p.queued) > 0 && p.journal.Failed() == nil {
		w := p.queued[0]
		p.queued[0] = nil
		p.queued = p.queued[1:]
		n := min(visitsPerTurn, p.left)
		p.left -= n - p.visitSome(w, n)
		if w.queued {
			p.queued = append(p.queued, w)
		}
	}
}
