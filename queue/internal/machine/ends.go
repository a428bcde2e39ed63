package machine

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// ends are the finished tasks in the order in which they are forgotten: for each
// queue, those that are dead and the others apart.
type ends map[endsOf][]end

type endsOf struct {
	queue string
	dead  bool
}

// end is one finished task.
type end struct {
	at    int64
	id    queue.ID
	state queue.State
}

// keys are the queues in an order that is always the same.
func (e ends) keys() []endsOf {
	return slices.SortedFunc(maps.Keys(e), func(a, b endsOf) int {
		if a.queue != b.queue {
			return cmp.Compare(a.queue, b.queue)
		}
		if a.dead == b.dead {
			return 0
		}
		if b.dead {
			return -1
		}
		return 1
	})
}

func (e ends) all() (all []end) {
	for _, of := range e.keys() {
		all = append(all, e[of]...)
	}
	return all
}

func endsFor(row *record.Row) endsOf { return endsOf{row.Queue, row.State == queue.Dead} }

func (o endsOf) row(e end) string {
	key := append([]byte(rowEnd+o.queue), 0, 0)
	if o.dead {
		key[len(key)-1] = 1
	}
	key = binary.BigEndian.AppendUint64(key, uint64(e.at))
	return string(append(key, e.id[:]...))
}

// retain keeps a task that is finished.
func (m *Machine) retain(l *line, row *record.Row) {
	m.journal.set(rowFinished+string(row.ID[:]), encode(row))
	of, e := endsFor(row), end{row.Changed.UnixNano(), row.ID, row.State}
	m.journal.set(of.row(e), []byte{byte(row.State)})
	m.ends[of] = append(m.ends[of], e)
	l.states[row.State]++
}

// unretain is the opposite, but that it leaves the task's own row.
func (m *Machine) unretain(row *record.Row) {
	of := endsFor(row)
	m.ends[of] = without(m.ends[of], row)
	m.journal.set(of.row(end{row.Changed.UnixNano(), row.ID, row.State}), nil)
	m.line(row.Queue).states[row.State]--
}

// without takes a task out of finished ones, which are in the order of their
// times. Mostly it is the first.
func without(all []end, row *record.Row) []end {
	at := row.Changed.UnixNano()
	i, _ := slices.BinarySearchFunc(all, at, func(e end, at int64) int { return cmp.Compare(e.at, at) })
	for ; i < len(all); i++ {
		if all[i].id != row.ID {
			continue
		}
		if i == 0 {
			return all[1:]
		}
		return slices.Delete(all, i, i+1)
	}
	return all
}

// What is kept of finished tasks if nothing is set.
const (
	keepAge     = 24 * time.Hour
	keepDeadAge = 30 * 24 * time.Hour
	keepCount   = 100_000
)

// keep is what is set for finished tasks, with the defaults.
func (m *Machine) keep(of endsOf) queue.Retention {
	l := m.line(of.queue)
	r, age := l.settings.Keep, keepAge
	if of.dead {
		r, age = l.settings.KeepDead, keepDeadAge
	}
	if r.Age == 0 {
		r.Age = age
	}
	if r.Count == 0 {
		r.Count = keepCount
	}
	return r
}

// expired returns the finished task of a queue that is to be forgotten now, and
// if there is none, when the next one is; 0 if there is none at all.
func (m *Machine) expired(of endsOf) (now bool, at int64) {
	all := m.ends[of]
	if len(all) == 0 {
		return false, 0
	}
	r := m.keep(of)
	at = all[0].at + int64(r.Age)
	return len(all) > r.Count || at <= m.now, at
}
