package machine

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// Open returns a machine on rows, which it closes when it is closed. It reads
// the rows of all unfinished tasks.
func Open(rows Rows, cfg Config) (*Machine, error) {
	m := &Machine{
		seq:        uint64(cfg.Epoch) << epochShift, // above those of all that is finished
		cfg:        cfg.withDefaults(),
		journal:    newJournal(rows),
		tasks:      make(map[queue.ID]*task),
		lines:      make(map[string]*line),
		settings:   make(map[string]queue.Settings),
		unique:     make(map[uniqueKey]queue.ID),
		batches:    make(map[queue.ID]*batch),
		dependents: make(map[queue.ID][]*task),
		poison:     make(map[fingerprint][]queue.ID),
		workers:    make(map[string]*worker),
		ends:       make(ends),
		watchers:   make(map[*watcher]struct{}),
	}
	for _, load := range []func() error{m.loadSettings, m.loadPoison, m.loadEnds, m.loadTasks} {
		if err := load(); err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
	}
	if err := m.journal.failed(); err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return m, m.journal.sync(m.journal.seal())
}

// scan calls fn for all rows of a sort, until it returns an error.
func (m *Machine) scan(sort string, fn func(key string, value []byte) error) (err error) {
	next := string(rune(sort[0] + 1))
	scanErr := m.journal.rows.Scan(sort, next, false, func(key string, value []byte) bool {
		err = fn(key[len(sort):], value)
		return err == nil
	})
	if err == nil {
		err = scanErr
	}
	return err
}

func (m *Machine) loadSettings() error {
	return m.scan(rowSettings, func(key string, value []byte) error {
		var s queue.Settings
		if err := json.Unmarshal(value, &s); err != nil {
			return fmt.Errorf("the settings of queue %q: %w", key, err)
		}
		m.settings[key] = s
		return nil
	})
}

func (m *Machine) loadPoison() error {
	return m.scan(rowPoison, func(key string, _ []byte) error {
		if len(key) != len(fingerprint{})+len(queue.ID{}) {
			return fmt.Errorf("%w: row %q of a task that has crashed its workers", record.ErrCorrupt, key)
		}
		f := fingerprint([]byte(key[:len(fingerprint{})]))
		m.poison[f] = append(m.poison[f], queue.ID([]byte(key[len(f):])))
		return nil
	})
}

func (m *Machine) loadEnds() error {
	return m.scan(rowEnd, func(key string, value []byte) error {
		const fixed = 1 + 1 + 8 + 16 // behind the queue's name: 0, dead or not, time, ID
		if len(key) < fixed || len(value) != 1 {
			return fmt.Errorf("%w: row %q of a finished task", record.ErrCorrupt, key)
		}
		name, rest := key[:len(key)-fixed], key[len(key)-fixed:]
		of := endsOf{name, rest[1] == 1}
		e := end{int64(binary.BigEndian.Uint64([]byte(rest[2:10]))), queue.ID([]byte(rest[10:])), queue.State(value[0])}
		m.ends[of] = append(m.ends[of], e)
		m.now = max(m.now, e.at) // they stay in the order of their times
		m.line(name).states[e.state]++
		return nil
	})
}

// loadTasks takes the unfinished tasks into the memory, by their age. Those
// that ran have lost their worker, which was a part of this process, or whose
// lease nobody remembers.
func (m *Machine) loadTasks() error {
	var rows []record.Row
	err := m.scan(rowTask, func(_ string, value []byte) error {
		row, err := record.Decode(value)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		return nil
	})
	if err != nil {
		return err
	}
	// Those that ran come first: the others of their groups go behind them.
	waits := func(r *record.Row) int {
		if r.State == queue.Running {
			return 0
		}
		return 1
	}
	slices.SortFunc(rows, func(a, b record.Row) int {
		return cmp.Or(cmp.Compare(waits(&a), waits(&b)), cmp.Compare(a.Seq, b.Seq))
	})
	for i := range rows {
		m.now = max(m.now, rows[i].Changed.UnixNano())
	}
	for i := range rows {
		m.load(&rows[i])
	}
	for i := range rows { // when all are there that one might wait for
		t := m.tasks[rows[i].ID]
		m.await(t, &rows[i])
		m.unhold(t)
		if t.state == queue.Waiting && !t.free() {
			m.revise(t, queue.Held, why{on: queue.OnHold})
		}
	}
	return nil
}

// load puts the task of a row into the memory, in the state that the row has.
func (m *Machine) load(row *record.Row) {
	m.seq = max(m.seq, row.Seq)
	t := m.admit(row)
	if row.State != queue.Running {
		m.enter(t, row.State)
		return
	}
	t.state = queue.Running
	t.line.states[queue.Running]++
	t.line.running++
	t.line.order.Admit(t.key)
	t.more().lease = &lease{row: *row, order: row.Order}
	m.due.set(&t.due, m.now)
	m.due.stop(&t.expiry)
}
