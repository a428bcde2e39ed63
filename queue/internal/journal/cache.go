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
)

// Withdrawn is a row that Withdraw found in memory.
type Withdrawn struct {
	Value  []byte
	Seq    uint64 // the mark up to which Sync makes it durable
	Stored bool   // the row is in rows as well
}

// cache is the changes that are not in rows yet, and rows that are likely to be read soon.
// The journal's mu guards it.
type cache struct {
	entries map[string]*entry
	peak    int // of entries, for shrink.Delete
	stored  int // bytes of the values that are in rows as well
	keep    int // the limit of stored
}

func newCache(keep int) cache { return cache{entries: make(map[string]*entry), keep: keep} }

// set sets the value of a key; seq is the mark of the change.
func (c *cache) set(key string, value []byte, seq uint64, soon bool) *entry {
	e := c.entries[key]
	if e == nil {
		e = &entry{key: key}
		c.entries[key] = e
	} else if e.stored {
		c.stored -= len(e.value)
	}
	e.value, e.seq, e.soon, e.stored = value, seq, soon, false
	return e
}

// withdraw returns the row of a key, and removes it if it is in rows as well.
func (c *cache) withdraw(key []byte) (row Withdrawn, ok bool) {
	e := c.entries[string(key)]
	if e == nil {
		return row, false
	}
	if e.stored {
		c.stored -= len(e.value)
		shrink.Delete(&c.entries, &c.peak, e.key)
	}
	return Withdrawn{e.value, e.seq, e.stored}, true
}

// hasRoom reports whether there is room for the rows of one Load.
func (c *cache) hasRoom() bool { return c.stored+c.keep/scanShare <= c.keep }

// missing returns the keys that have no row in memory. It reuses the array of keys.
func (c *cache) missing(keys []string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { _, ok := c.entries[key]; return ok })
}

// add adds rows that Load has read.
func (c *cache) add(found []Change) {
	for _, row := range found {
		c.entries[row.Key] = &entry{key: row.Key, value: row.Value, stored: true}
		c.stored += len(row.Value)
	}
}

// forget removes the changes of a batch, after those up to applied have been applied,
// except for rows that will probably be read soon while there is room.
func (c *cache) forget(batch []Change, applied uint64) {
	for _, change := range batch {
		switch e := change.cached; {
		case e.seq > applied || e.stored:
		case e.soon && c.stored+len(e.value) <= c.keep-c.keep/loadShare:
			e.stored = true
			c.stored += len(e.value)
		default:
			shrink.Delete(&c.entries, &c.peak, e.key)
		}
	}
}

// Withdraw returns the row of a key if it is in memory, and removes it from memory if it
// is in rows as well.
func (j *Journal) Withdraw(key []byte) (row Withdrawn, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.cache.withdraw(key)
}

// HasRoom reports whether there is room in memory for rows that Load reads.
func (j *Journal) HasRoom() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.cache.hasRoom()
}

// Load reads the rows of those keys that are not in memory into memory, in one call. The
// keys must be in ascending order, and none of them may be set meanwhile. Errors are
// ignored: then fewer rows are in memory.
func (j *Journal) Load(keys []string) {
	// A key in memory may have a change that is not in rows yet, so it must not be read
	// from rows.
	j.mu.Lock()
	keys, most := j.cache.missing(keys), j.cache.keep/scanShare
	j.mu.Unlock()
	if len(keys) == 0 {
		return
	}
	found := j.Stored().find(keys, most)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cache.add(found)
}
