package journal

import (
	"slices"

	"github.com/stintgo/stint/internal/shrink"
)

// entry is a change that is not in rows yet, or a row that is likely to be read soon. The
// changes of a batch point to their entries, which avoids a second lookup in the cache.
type entry struct {
	key    string
	value  []byte // nil if the key is removed
	seq    uint64 // the mark of the change; 0 if it was read from rows
	soon   bool   // the key will probably be read soon
	stored bool   // the value is in rows as well
}

const (
	loadShare = 4  // 1/4 of keep is reserved for rows that Load reads
	scanShare = 16 // one Load reads at most 1/16 of keep

	// maxSpare is the largest capacity, in changes, of a batch that is reused.
	maxSpare = 4096
)

// Withdrawn is a row that Withdraw found in memory.
type Withdrawn struct {
	Value  []byte
	Seq    uint64 // the mark up to which Sync makes it durable
	Stored bool   // the row is in rows as well
}

// Withdraw returns the row of a key if it is in memory, and removes it from memory if it
// is in rows as well.
func (j *Journal) Withdraw(key []byte) (row Withdrawn, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.cache[string(key)]
	if e == nil {
		return row, false
	}
	if e.stored {
		j.stored -= len(e.value)
		shrink.Delete(&j.cache, &j.peak, e.key)
	}
	return Withdrawn{e.value, e.seq, e.stored}, true
}

// HasRoom reports whether there is room in memory for rows that Load reads.
func (j *Journal) HasRoom() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stored+j.keep/scanShare <= j.keep
}

// Load reads the rows of those keys that are not in memory into memory, in one call. The
// keys must be in ascending order, and none of them may be set meanwhile. Errors are
// ignored: then fewer rows are in memory.
func (j *Journal) Load(keys []string) {
	// A key in memory may have a change that is not in rows yet, so it must not be read
	// from rows.
	if keys = j.missing(keys); len(keys) == 0 {
		return
	}
	if rows, ok := j.rows.(KeyReader); ok {
		j.add(readKeys(rows, keys, j.keep/scanShare))
	} else {
		j.add(scanFor(j.rows, keys, j.keep/scanShare))
	}
}

// readKeys returns the rows of keys, until their values have most bytes.
func readKeys(rows KeyReader, keys []string, most int) (found []Change) {
	values, _ := rows.ReadKeys(keys, most)
	for i, value := range values {
		if value != nil {
			found = append(found, Change{Key: keys[i], Value: value})
		}
	}
	return found
}

// scanFor is readKeys by one scan of the range in which the keys are.
func scanFor(rows Rows, keys []string, most int) (found []Change) {
	size, last := 0, keys[len(keys)-1]
	_ = rows.Scan(keys[0], last+"\x00", false, func(key string, value []byte) bool {
		for keys[0] < key {
			keys = keys[1:]
		}
		if keys[0] == key {
			found = append(found, Change{Key: key, Value: slices.Clone(value)})
			size += len(value)
		}
		return key != last && size < most
	})
	return found
}

// missing returns the keys that have no row in memory. It reuses the array of keys.
func (j *Journal) missing(keys []string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(keys, func(key string) bool { _, ok := j.cache[key]; return ok })
}

// add puts rows that Load has read into memory.
func (j *Journal) add(found []Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, row := range found {
		j.cache[row.Key] = &entry{key: row.Key, value: row.Value, stored: true}
		j.stored += len(row.Value)
	}
}

// forgetLocked removes the changes of an applied batch from memory, except for rows that
// will probably be read soon while there is room. The caller must hold mu.
func (j *Journal) forgetLocked(batch []Change) {
	for _, c := range batch {
		switch e := c.cached; {
		case e.seq > j.applied || e.stored:
		case e.soon && j.stored+len(e.value) <= j.keep-j.keep/loadShare:
			e.stored = true
			j.stored += len(e.value)
		default:
			shrink.Delete(&j.cache, &j.peak, e.key)
		}
	}
	if cap(batch) <= maxSpare {
		clear(batch)
		j.spare = batch[:0]
	}
}
