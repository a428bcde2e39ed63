package machine

import (
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// unclaim takes starts back that nobody was told of, because they could not be
// noted. It leaves nothing behind: a disk that fails for long would fill the
// histories of tasks with starts that never were. Who may claim them is told if others
// of the claim have been noted. Else the next claim would fail as this one has, and
// so without end.
func (m *Machine) unclaim(starts []Noted, others bool) {
	m.lockCorrected()
	defer m.mu.Unlock()
	for _, s := range slices.Backward(starts) { // the last one first: see unspend
		t := m.tasks.get(s.ID)
		if t == nil || t.leased() == nil || t.lease.row.Lease.Token != s.Token || m.closed {
			continue
		}
		var row record.Row
		if m.untouched(t, &row) {
			m.putBack(t, &row)
			m.leaseLog.starts.Free(s.Place, s.Token)
		} else {
			m.giveBack(t, "its start could not be noted")
		}
		if others {
			m.queues.of(t).signal()
		}
	}
	m.seal() // nobody waits for it: if it is lost, so is the claim
}

// untouched reads the row of a task as it was before it was claimed, and reports
// whether it can be that again: nobody has given an order meanwhile, or tried an
// older task of its group again.
func (m *Machine) untouched(t *task, row *record.Row) bool {
	if t.lease.order != 0 {
		return false
	}
	if g := t.group; g != nil {
		if oldest, _ := g.byAge.first(); oldest.of != t {
			return false
		}
	}
	return m.rows.read(t, row) == nil && row.State == queue.Waiting // else it has been written
}

// putBack has a running task wait again as its row tells, as if it had not been
// claimed. Only watchers are told, who know of the claim.
func (m *Machine) putBack(t *task, row *record.Row) {
	l, held := m.queues.of(t), t.lease
	w := queue.Step{
		At: m.clock.time(), On: queue.OnGiveBack, To: queue.Waiting, By: held.row.Lease.Worker,
		Token: held.row.Lease.Token, Detail: "its start could not be noted",
	}
	m.watchers.send(queue.Event{ID: t.id, Queue: row.Queue, Kind: row.Kind, From: queue.Running, Step: w})
	m.states.unrun(t, row)
	m.unspend(l, row.Key, w.Token)
}

// unspend takes a start back that was counted against rates, if it is the last one of
// its queue. One that came later may have started on what was gained by waiting, which
// does not come twice. A rate that has been set meanwhile is at most as good as new.
func (m *Machine) unspend(l *line, key string, token queue.Token) {
	if l.lastStart != token {
		return
	}
	l.lastStart-- // the one before it in its claim, or nobody's
	l.arrival = l.limits.rate.unspend(l.arrival)
	m.keyRates.unspend(l, key)
}
