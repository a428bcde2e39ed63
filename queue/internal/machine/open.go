package machine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// Open returns a machine on rows, which it closes when it is closed. It reads
// all rows.
func Open(rows Rows, cfg Config) (*Machine, error) {
	m := &Machine{
		cfg:      cfg.withDefaults(),
		journal:  newJournal(rows, cfg.Keep),
		tasks:    newTasks(),
		counters: newCounters(cfg.Epoch),
		opening:  new(opening),
	}
	m.wire()
	for _, load := range []func() error{
		m.settings.load, m.scheduleSet.load, m.uniqueNames.load, m.cascades.load, m.loadTasks, m.fingerprints.load,
	} {
		if err := load(); err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
	}
	if err := m.journal.failed(); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	m.mu.Lock()
	return m, m.endAt(nil, nil)
}

// loadTasks takes the tasks into the memory.
func (m *Machine) loadTasks() error {
	var (
		order   reorder
		running []record.Row
		joining []record.Head
	)
	starts, over, err := m.leaseLog.recall()
	if err != nil {
		return err
	}
	noted := func(id queue.ID) bool { _, ok := starts[id]; return ok }
	err = m.eachHead(noted, func(h *headed) error {
		m.counters.reserve(h.seq)
		m.clock.now = max(m.clock.now, h.changed)
		if h.rest == nil {
			m.loadWaiting(h, &order)
			return nil
		}
		head := &h.rest.head
		if !head.State.Finished() && joins(head) {
			joining = append(joining, *head)
		}
		row, ran, err := m.ran(head, h.rest.value, starts[head.ID])
		if ran {
			running = append(running, row)
		} else if err == nil {
			err = m.loadHead(head, h.rest.value, &order)
		}
		return err
	})
	if err != nil {
		return err
	}
	m.tasks.indexAll()
	order.flush(m, len(order.window))
	for i := range running {
		m.loadRunning(&running[i], starts[running[i].ID])
	}
	m.states.sortLists()
	m.loadJoins(joining)
	m.restart()
	m.leaseLog.over = m.leaseLog.unused(starts, over)
	return nil
}

// loadWaiting puts a task that only waits into the memory.
func (m *Machine) loadWaiting(h *headed, order *reorder) {
	t := m.tasks.addUnindexed(h.id)
	m.states.bind(t, h.queue, h.tier, h.unique, h.seq)
	t.state, t.at = queue.Waiting, h.changed
	m.queues.of(t).states[queue.Waiting]++
	order.add(m, arrival{t, h.key, h.kind, h.seq, false})
}

// loadHead puts the task of a row into the memory, in the state that the row has.
// The rest of the row is looked at only if it has crashed.
func (m *Machine) loadHead(h *record.Head, value []byte, order *reorder) error {
	row := h.Row()
	t := m.tasks.addUnindexed(h.ID)
	m.states.bind(t, h.Queue, uint8(h.Tier-stint.Lowest), h.Unique != "", h.Seq)
	if !h.State.Finished() {
		m.states.arm(t, &row)
	}
	if h.State == queue.Waiting {
		t.state, t.at = queue.Waiting, unix(h.Changed)
		m.queues.of(t).states[queue.Waiting]++
		suspect, err := suspectedHead(h, value)
		order.add(m, arrival{t, h.Key, h.Kind, h.Seq, suspect})
		return err
	}
	m.states.enter(t, &row, h.State)
	return nil
}

// suspectedHead is suspected for a row of which the head has been read: the rest
// tells how many crashes are too many.
func suspectedHead(h *record.Head, value []byte) (bool, error) {
	if h.Crashes == 0 {
		return false, nil
	}
	row, err := record.Decode(value)
	return suspected(&row), err
}

func joins(h *record.Head) bool {
	return h.Group != "" || !h.Batch.IsZero() || len(h.After) > 0 || len(h.AfterAny) > 0 ||
		!h.AfterBatch.IsZero()
}

// loadJoins has unfinished tasks take part in groups and batches, and wait for
// others, when all are there that one might wait for.
func (m *Machine) loadJoins(joining []record.Head) {
	slices.SortFunc(joining, func(a, b record.Head) int { return cmp.Compare(a.Seq, b.Seq) })
	for i := range joining {
		row := joining[i].Row()
		m.holds.joinOthers(m.tasks.get(row.ID), &row)
	}
	for i := range joining {
		row := joining[i].Row()
		m.deps.await(m.tasks.get(row.ID), &row.Spec)
	}
	m.cascades.resume()
	misplaced := new(waiters)
	for i := range joining {
		if t := m.tasks.get(joining[i].ID); m.holds.misplaced(t) {
			misplaced.PushBack(t)
		}
	}
	m.passes.start(misplaced, visitAdjust)
}
