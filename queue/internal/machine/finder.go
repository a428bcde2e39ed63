package machine

import (
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// finder finds the tasks that a filter describes, in the order of their IDs. The memory
// answers for most fields; only a filter that asks for others has rows read. It changes
// nothing. sift needs no lock; the caller of every other method holds the lock of the
// machine.
type finder struct {
	journal *journal
	queues  *queueSet
	rows    *taskRows
	tasks   *tasks
	views   *views
}

// look finds what may be found as far as the memory tells.
func (d *finder) look(s *search) {
	s.ids = s.ids[:0]
	looked := 0
	s.done = d.tasks.ids.from(s.after, s.down, func(no uint32) bool {
		t := d.tasks.at(no)
		s.after = t.id
		if d.mayMatch(s, t) {
			s.ids = append(s.ids, t.id)
		}
		looked++
		return looked < partLooked && len(s.ids) < s.most
	})
}

// mayMatch reports whether the memory tells nothing against a task.
func (d *finder) mayMatch(s *search, t *task) bool {
	if !s.ending.of(&t.id) || !concerns(s.do, t) {
		return false
	}
	f := &s.filter
	return (f.Queue == "" || f.Queue == d.queues.of(t).name) &&
		(f.Worker == "" || t.state == queue.Running && t.lease.row.Lease.Worker == f.Worker) &&
		(len(f.States) == 0 || slices.Contains(f.States, d.views.stateOf(t)))
}

// match returns a task if it is one that is searched for, none if it is not. The
// error is that of a row which would have to be read to tell.
func (d *finder) match(s *search, id queue.ID) (f finding, err error) {
	t := d.tasks.get(id)
	if t == nil || !d.mayMatch(s, t) {
		return f, nil
	}
	f = finding{id: id, task: t}
	if s.asksRows() {
		row, err := d.rows.row(t)
		if err != nil || !s.matches(&row) {
			return finding{}, err
		}
		f.row = &row
	}
	return f, nil
}

// sift drops tasks that the filter does not find, as their rows tell at this
// moment. It needs no lock.
func (d *finder) sift(s *search) {
	if !s.asksRows() {
		return
	}
	s.ids = slices.DeleteFunc(s.ids, func(id queue.ID) bool {
		value, getErr := d.journal.get(taskRow(&id))
		if getErr != nil || value == nil { // it has been forgotten, or is reported where its row is needed
			return getErr == nil
		}
		row, decodeErr := record.Decode(value)
		return decodeErr == nil && !s.matches(&row)
	})
}
