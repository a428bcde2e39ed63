package journal

import (
	"slices"

	"github.com/stintgo/stint/internal/shrink"
)

// entry is a change that is not in rows yet, or a row that is soon to be read. Both the
// journal and the changes of a batch point to it: finding it again would take longer than
// what is done with it.
type entry struct {
	key    string
	value  []byte // nil if the key is removed
	seq    uint64 // the mark of the change; 0 if it was read from rows
	soon   bool   // it is to be read soon
	stored bool   // it is in rows as well
}

const (
	loadShare = 4  // the part of keep that is left free for rows that Load reads
	scanShare = 16 // and the part that one Load reads, at most

	// maxSpare is the largest length of a batch whose memory is used again.
	maxSpare = 4096
)

// Withdrawn is a row that was in memory.
type Withdrawn struct {
	Value  []byte
	Seq    uint64 // the mark from which on it is durable
	Stored bool   // it was in rows as well
}

// Withdraw returns the row of a key, if it is in memory. If it is in rows as well, it is
// removed from memory.
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

// Load reads the rows of keys that are not in memory, in one scan, into memory. The keys
// ascend, and none of them may be set meanwhile. After an error, fewer rows are in
// memory.
func (j *Journal) Load(keys []string) {
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
		return key != last && size < j.keep/scanShare
	})
	j.add(found)
}

// missing returns the keys of which no row is in memory.
func (j *Journal) missing(keys []string) []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.DeleteFunc(keys, func(key string) bool { _, ok := j.cache[key]; return ok })
}

// add adds rows that have been read from rows.
func (j *Journal) add(found []Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, row := range found {
		j.cache[row.Key] = &entry{key: row.Key, value: row.Value, stored: true}
		j.stored += len(row.Value)
	}
}

// forget removes the changes of a batch that is in rows now from memory, but for those
// that are soon to be read, as long as there is room. The caller holds mu.
func (j *Journal) forget(batch []Change) {
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
