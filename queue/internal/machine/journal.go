package machine

import (
	"fmt"
	"sync"

	"github.com/stintgo/stint/queue"
)

// journal turns what many callers write into few batches. Whoever waits for its
// changes to be durable applies those of all others with them, unless somebody
// is just doing that; so a sync is shared by all who wait for it, and nobody
// waits for company.
//
// Until a change is applied, get answers with it: decisions are made on what has
// been decided, and answered when it is durable.
type journal struct {
	rows Rows

	mu      sync.Mutex
	batch   []Change
	written uint64            // changes so far
	ahead   map[string]change // changes that are not in rows yet

	applying sync.Mutex // held while a batch is applied; before mu
	applied  uint64     // changes that are durable; guarded by applying
	err      error      // why nothing more can be; guarded by mu
}

// change is one that is not in rows yet.
type change struct {
	value []byte // nil if the key is removed
	seq   uint64
}

func newJournal(rows Rows) *journal { return &journal{rows: rows, ahead: make(map[string]change)} }

// set changes a key; nil removes it.
func (j *journal) set(key string, value []byte) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written++
	j.batch = append(j.batch, Change{key, value})
	j.ahead[key] = change{value, j.written}
}

// get returns the value of a key, nil if there is none.
func (j *journal) get(key string) ([]byte, error) {
	j.mu.Lock()
	c, ok := j.ahead[key]
	j.mu.Unlock()
	if ok {
		return c.value, nil
	}
	return j.rows.Get(key)
}

// mark returns how many changes there have been, for sync.
func (j *journal) mark() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// failed returns why nothing more can be written.
func (j *journal) failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// fail has nothing more be written.
func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}

// sync returns when the changes up to a mark are durable.
func (j *journal) sync(mark uint64) error {
	j.applying.Lock()
	defer j.applying.Unlock()
	if j.applied >= mark {
		return nil
	}
	j.mu.Lock()
	batch, written, err := j.batch, j.written, j.err
	j.batch = nil
	j.mu.Unlock()
	if err != nil {
		return err
	}
	if err := j.rows.Apply(batch); err != nil {
		err = fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
		j.mu.Lock()
		j.err = err
		j.mu.Unlock()
		return err
	}
	j.applied = written
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range batch {
		if j.ahead[c.Key].seq <= written {
			delete(j.ahead, c.Key)
		}
	}
	return nil
}
