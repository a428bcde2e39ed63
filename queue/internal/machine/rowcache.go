package machine

import (
	"slices"

	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
)

// Rows that the journal keeps in memory although they are in rows: those that were
// written lately and are soon to be read, and those that were read ahead.

const (
	prefetchShare = 4  // the part of what may be kept that is for what is read ahead
	scanShare     = 16 // and the part that is read in one go, at most
)

// withdraw returns the row of a task, if it is in memory. If it is kept it is no longer.
func (j *journal) withdraw(id *queue.ID) (row cachedRow, ok bool) {
	var key [len(rowTask) + len(id)]byte
	copy(key[copy(key[:], rowTask):], id[:])
	j.mu.Lock()
	defer j.mu.Unlock()
	a := j.cache[string(key[:])]
	if a == nil {
		return row, false
	}
	if a.stored {
		j.storedBytes -= len(a.value)
		shrink.Delete(&j.cache, &j.peak, a.key)
	}
	return *a, true
}

// room reports whether there is any for rows that are read ahead.
func (j *journal) hasRoom() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.storedBytes+j.maxStored/scanShare <= j.maxStored
}

// load reads rows into the memory that are not in it, in one go. Their keys ascend,
// and nobody may set them meanwhile. After an error there are fewer.
func (j *journal) load(keys []string) {
	// What is not in rows yet must not come from there.
	if keys = j.missing(keys); len(keys) == 0 {
		return
	}
	var found []Change
	size, last := 0, keys[len(keys)-1]
	_ = j.rows.Scan(keys[0], last+"\x00", false, func(key string, value []byte) bool {
		for keys[0] < key {
			keys = keys[1:]
		}
		if keys[0] == key {
			found = append(found, Change{Key: key, Value: slices.Clone(value)})
			size += len(value)
		}
		return key != last && size < j.maxStored/scanShare
	})
	j.keep(found)
}

// missing are those of some keys of which no row is in memory.
func (j *journal) missing(keys []string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(keys, func(key string) bool { _, ok := j.cache[key]; return ok })
}

// keep keeps rows as they are in rows.
func (j *journal) keep(found []Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, row := range found {
		j.cache[row.Key] = &cachedRow{key: row.Key, value: row.Value, stored: true}
		j.storedBytes += len(row.Value)
	}
}
