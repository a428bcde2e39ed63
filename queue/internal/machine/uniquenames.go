package machine

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/internal/record"
)

// uniqueNames is the unique names of tasks that retention has forgotten before their
// UniqueFor was over: in memory and in a row each, until then. The unique name of a task
// that is remembered is only in a row. A purge keeps no name: it removes all of a task.
// The caller of each method holds the lock of the machine.
type uniqueNames struct {
	clock   *clock
	journal *journal.Journal

	byName map[string]*keptUnique // by their names
	ends   heap[*keptUnique]
	peak   int // of byName, as shrink.Delete has it
}

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

// keep keeps the Unique of a task that retention forgets, if its time is not over.
func (u *uniqueNames) keep(row *record.Row) {
	until := unix(row.Submitted.Add(row.UniqueFor))
	if row.UniqueFor == 0 || until <= u.clock.now {
		return
	}
	k := u.add(uniqueName(&row.Spec))
	k.id, k.submitted, k.until = row.ID, unix(row.Submitted), until
	u.write(k)
}

func (u *uniqueNames) write(k *keptUnique) {
	u.ends.set(k, k.until)
	value := binary.BigEndian.AppendUint64(k.id[:], uint64(k.submitted))
	u.journal.Set(rowKept+k.name, binary.BigEndian.AppendUint64(value, uint64(k.until)), false)
}

// setBack corrects the times of tasks that were submitted by a clock that was ahead.
func (u *uniqueNames) setBack(back time.Duration) {
	for _, k := range u.byName {
		if k.submitted > u.clock.now {
			k.submitted, k.until = k.submitted-int64(back), k.until-int64(back)
			u.write(k)
		}
	}
}

func (u *uniqueNames) add(name string) *keptUnique {
	k := u.byName[name]
	if k == nil {
		k = &keptUnique{name: name}
		u.byName[name] = k
	}
	return k
}

// of returns the forgotten task whose unique name a new task has; zero if there is none.
func (u *uniqueNames) of(s *queue.Spec) (id queue.ID) {
	if len(u.byName) == 0 {
		return id
	}
	if k := u.byName[uniqueName(s)]; k != nil && k.until > u.clock.now {
		return k.id
	}
	return id
}

// expire drops the name whose time is over first, and reports whether there was one.
func (u *uniqueNames) expire() bool {
	e, ok := u.ends.first()
	if !ok || e.rank > u.clock.now {
		return false
	}
	u.ends.remove(e.of)
	shrink.Delete(&u.byName, &u.peak, e.of.name)
	u.journal.Set(rowKept+e.of.name, nil, false)
	return true
}

func (u *uniqueNames) load() error {
	return u.journal.Scan(rowKept, func(key string, value []byte) error {
		k := u.add(key)
		if len(value) != len(k.id)+2*8 {
			return fmt.Errorf("%w: row %q of the unique name of a forgotten task", record.ErrCorrupt, key)
		}
		copy(k.id[:], value)
		times := value[len(k.id):]
		k.submitted, k.until = int64(binary.BigEndian.Uint64(times)), int64(binary.BigEndian.Uint64(times[8:]))
		u.clock.now = max(u.clock.now, k.submitted)
		u.ends.set(k, k.until)
		return nil
	})
}

// named reads a row that holds an ID; zero if there is none.
func (u *uniqueNames) named(key string) (id queue.ID, err error) {
	value, err := u.journal.Get(key)
	if err != nil {
		return id, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	copy(id[:], value)
	return id, nil
}

// uniqueRow is the key of the row that says which task has a Unique.
func uniqueRow(s *queue.Spec) string { return rowUnique + uniqueName(s) }
