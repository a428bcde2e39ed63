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

// uniqueNames reserves the unique names of tasks that retention has forgotten before
// their UniqueFor has passed: each in memory and in a row, until then. The unique name
// of a task that is not forgotten is only in a row. A purge reserves no name. The
// caller of each method holds the lock of the machine.
type uniqueNames struct {
	clock   *clock
	journal *journal.Journal

	byName map[string]*reservedName // by reservedName.name
	ends   heap[*reservedName]
	peak   int // of byName, for shrink.Delete
}

// reservedName is the unique name of a task that has been forgotten.
type reservedName struct {
	name             string // as uniqueName returns it
	id               queue.ID
	submitted, until int64
	due              uint32 // the index in ends
}

func indexOfName(k *reservedName) *uint32 { return &k.due }

// uniqueName returns the queue, a zero byte and the Unique: the key of its row without
// the letter.
func uniqueName(s *queue.Spec) string { return queueOf(s) + "\x00" + s.Unique }

// keep reserves the unique name of a task that retention forgets, unless its UniqueFor
// has passed.
func (u *uniqueNames) keep(row *record.Row) {
	until := unix(row.Submitted.Add(row.UniqueFor))
	if row.UniqueFor == 0 || until <= u.clock.now {
		return
	}
	k := u.add(uniqueName(&row.Spec))
	k.id, k.submitted, k.until = row.ID, unix(row.Submitted), until
	u.write(k)
}

// write writes the row of a reserved name.
func (u *uniqueNames) write(k *reservedName) {
	u.ends.set(k, k.until)
	value := binary.BigEndian.AppendUint64(k.id[:], uint64(k.submitted))
	u.journal.Set(rowReserved+k.name, binary.BigEndian.AppendUint64(value, uint64(k.until)), false)
}

// setBack corrects the times of names whose tasks were submitted while the clock was
// ahead.
func (u *uniqueNames) setBack(back time.Duration) {
	for _, k := range u.byName {
		if k.submitted > u.clock.now {
			k.submitted, k.until = k.submitted-int64(back), k.until-int64(back)
			u.write(k)
		}
	}
}

// add returns the entry of a name, and adds one if there is none.
func (u *uniqueNames) add(name string) *reservedName {
	k := u.byName[name]
	if k == nil {
		k = &reservedName{name: name}
		u.byName[name] = k
	}
	return k
}

// of returns the ID of the forgotten task that reserves the unique name of a new task;
// zero if there is none.
func (u *uniqueNames) of(s *queue.Spec) (id queue.ID) {
	if len(u.byName) == 0 {
		return id
	}
	if k := u.byName[uniqueName(s)]; k != nil && k.until > u.clock.now {
		return k.id
	}
	return id
}

// expire removes the name whose time has passed first, and reports whether there was one.
func (u *uniqueNames) expire() bool {
	e, ok := u.ends.first()
	if !ok || e.rank > u.clock.now {
		return false
	}
	u.ends.remove(e.of)
	shrink.Delete(&u.byName, &u.peak, e.of.name)
	u.journal.Set(rowReserved+e.of.name, nil, false)
	return true
}

// load reads the rows of all reserved names.
func (u *uniqueNames) load() error {
	return u.journal.Stored().Scan(rowReserved, func(key string, value []byte) error {
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

// named returns the ID in the row of a unique name; zero if there is no row.
func (u *uniqueNames) named(key string) (id queue.ID, err error) {
	value, err := u.journal.Get(key)
	if err != nil {
		return id, fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	copy(id[:], value)
	return id, nil
}

// uniqueRow returns the key of the row that has the ID of the task with a unique name.
func uniqueRow(s *queue.Spec) string { return rowUnique + uniqueName(s) }
