package machine

import (
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// What becomes of leases when a machine ends and another one is opened on its
// rows. Workers in its process have ended with it: if it was closed, their leases
// have been given back, and if not, they are lost. Workers in others do not know
// that anything happened, and their leases go on.

// ran returns the row of a task that ran when the store ended, as its row tells, or
// what was noted of its start.
func (m *Machine) ran(h *record.Head, value []byte, n Noted) (row record.Row, ran bool, err error) {
	started := h.State == queue.Waiting && n.Token > 0 && n.Seq == h.Seq
	if h.State != queue.Running && !started {
		return row, false, nil
	}
	if row, err = record.Decode(value); err != nil {
		return row, false, err
	}
	m.makeGood(&row, n)
	return row, row.State == queue.Running, nil
}

// makeGood has a row tell of its last claim, if only its start was noted. A row
// that waits as it did when it was claimed is the only one of which that can be
// so: all that happens to a running task, and its end, writes the row.
func (m *Machine) makeGood(row *record.Row, n Noted) {
	if n.Token > row.Lease.Token && row.State == queue.Waiting {
		m.clock.now = max(m.clock.now, n.At.UnixNano())
		m.transitions.claimed(m.queues.get(row.Queue), row, n.Start, n.At)
	}
}

// released has the row of a task that ran tell that it does no more. Its last
// token stays: no older one is ever valid again.
func released(row *record.Row) {
	row.Lease.Until, row.Remote = time.Time{}, 0
	row.Order, row.OrderBy, row.OrderReason = 0, "", ""
}

// loadRunning puts a task that runs into the memory. What is noted of its lease, if
// it is of this one, keeps its place with it.
func (m *Machine) loadRunning(row *record.Row, n Noted) {
	t := m.states.admit(row)
	m.queues.of(t).order.Admit(row.Key)
	held := &lease{row: *row, order: row.Order, by: row.OrderBy, reason: row.OrderReason}
	if n.Token == row.Lease.Token {
		held.place = n.Place
	}
	m.states.run(t, held, m.clock.after(row.Remote))
}

// restart decides about the leases that there were: those of workers of the
// process that has ended are lost, and the others begin anew.
func (m *Machine) restart() {
	for _, t := range m.states.leased() {
		if t.lease.row.Remote > 0 {
			m.opening.resumed = append(m.opening.resumed, t)
		} else {
			m.attempts.lose(t)
			m.opening.lost = append(m.opening.lost, t)
		}
	}
}

// resume has the leases that outlived a restart begin anew at the first call.
func (m *Machine) resume(leased []*task) {
	for _, t := range leased {
		t.at = m.clock.now
		m.states.extend(t, t.lease.row.Remote)
	}
}
