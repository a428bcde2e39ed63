package machine

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

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
	batch   []Change          // what is to be applied
	whole   int               // so many of them belong to steps that are complete
	written uint64            // changes so far
	sealed  uint64            // and of complete steps
	ahead   map[string]change // changes that are not in rows yet

	applying sync.Mutex    // held while a batch is applied; before mu
	applied  atomic.Uint64 // changes that are durable; changes with applying held
	err      error         // why nothing more can be; guarded by mu
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

// mark returns how many changes there have been, for sync once the step is sealed.
func (j *journal) mark() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// seal ends a step, and returns its mark. All of a step is applied at once: between
// two of its changes there may be no row of a task, or two. Whoever waits for the
// steps before it must not take a part of it along.
func (j *journal) seal() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.whole, j.sealed = len(j.batch), j.written
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

// sync returns when the changes up to a mark, which are those of complete steps,
// are durable.
func (j *journal) sync(mark uint64) error {
	if j.applied.Load() >= mark { // before others' batch is waited for
		return nil
	}
	j.applying.Lock()
	defer j.applying.Unlock()
	if j.applied.Load() >= mark {
		return nil
	}
	batch, written, err := j.take()
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
	j.applied.Store(written)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, c := range batch {
		if j.ahead[c.Key].seq <= written {
			delete(j.ahead, c.Key)
		}
	}
	return nil
}

// take returns the changes of the steps that are complete, for the caller to apply.
func (j *journal) take() (batch []Change, written uint64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	batch, written = j.batch[:j.whole:j.whole], j.sealed
	j.batch, j.whole = slices.Clone(j.batch[j.whole:]), 0
	return batch, written, j.err
}
