package machine

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// The Unique of a task is a row as long as the task is remembered. If retention forgets
// the task before its UniqueFor is over, the Unique is kept in memory and in another
// row until then. A purge keeps nothing: an operator who purges a task wants to be rid
// of it.

// keptUnique is the Unique of a task that has been forgotten.
type keptUnique struct {
	name             string // its queue, 0, and the Unique
	id               queue.ID
	submitted, until int64
	due              uint32 // its place in the heap by until
}

func placeOfUnique(k *keptUnique) *uint32 { return &k.due }

// uniqueName is what identifies a Unique: the key of its row behind the sort.
func uniqueName(s *queue.Spec) string { return queueOf(s) + "\x00" + s.Unique }

// keepUnique keeps the Unique of a task that retention forgets, if its time is not over.
func (m *Machine) keepUnique(row *record.Row) {
	until := unix(row.Submitted.Add(row.UniqueFor))
	if row.UniqueFor == 0 || until <= m.clock.now {
		return
	}
	k := m.addUnique(uniqueName(&row.Spec))
	k.id, k.submitted, k.until = row.ID, unix(row.Submitted), until
	m.writeUnique(k)
}

func (m *Machine) writeUnique(k *keptUnique) {
	m.uniqueEnds.set(k, k.until)
	value := binary.BigEndian.AppendUint64(k.id[:], uint64(k.submitted))
	m.journal.set(rowKept+k.name, binary.BigEndian.AppendUint64(value, uint64(k.until)), false)
}

// setBackUniques corrects the times of tasks that were submitted by a clock that was
// ahead, as setBack does.
func (m *Machine) setBackUniques(back time.Duration) {
	for _, k := range m.uniques {
		if k.submitted > m.clock.now {
			k.submitted, k.until = k.submitted-int64(back), k.until-int64(back)
			m.writeUnique(k)
		}
	}
}

func (m *Machine) addUnique(name string) *keptUnique {
	k := m.uniques[name]
	if k == nil {
		k = &keptUnique{name: name}
		m.uniques[name] = k
	}
	return k
}

// keptFor returns the forgotten task whose Unique a new task has; zero if there is none.
func (m *Machine) keptFor(s *queue.Spec) (id queue.ID) {
	if len(m.uniques) == 0 {
		return id
	}
	if k := m.uniques[uniqueName(s)]; k != nil && k.until > m.clock.now {
		return k.id
	}
	return id
}

// tendUnique drops the Unique whose time is over first, and reports whether there was
// one.
func (m *Machine) tendUnique() bool {
	e, ok := m.uniqueEnds.first()
	if !ok || e.rank > m.clock.now {
		return false
	}
	m.uniqueEnds.remove(e.of)
	shrink.Delete(&m.uniques, &m.peaks.uniques, e.of.name)
	m.journal.set(rowKept+e.of.name, nil, false)
	return true
}

func (m *Machine) loadUniques() error {
	return m.journal.scan(rowKept, func(key string, value []byte) error {
		k := m.addUnique(key)
		if len(value) != len(k.id)+2*8 {
			return fmt.Errorf("%w: row %q of the unique name of a forgotten task", record.ErrCorrupt, key)
		}
		copy(k.id[:], value)
		times := value[len(k.id):]
		k.submitted, k.until = int64(binary.BigEndian.Uint64(times)), int64(binary.BigEndian.Uint64(times[8:]))
		m.clock.now = max(m.clock.now, k.submitted)
		m.uniqueEnds.set(k, k.until)
		return nil
	})
}
