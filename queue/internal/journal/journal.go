// Package journal is group commit: it turns what many callers write into few batches of
// rows, and keeps in memory what is not in the rows yet.
//
//   - rows.go: [Rows], the seam of four calls that a store implements, and [Change].
//   - journal.go: [Journal], its changes, marks and steps.
//   - round.go: the rounds in which callers wait for a batch, and one of them applies it.
//   - cache.go: rows that stay in memory because they are likely to be read soon.
package journal

import (
	"sync"
)

// Journal collects the changes of steps and applies them to Rows in batches. A caller
// whose changes have to be durable applies those of all callers with them, unless a batch
// is being applied already; so one sync is shared by all callers that wait for it, and no
// caller waits for company.
//
// Until a change is applied, Get returns it: steps are decided on what has been decided
// before, and answered when it is durable. The first error of Rows ends the journal: see
// Failed.
//
// All methods may be called from any goroutine. Each takes mu itself and calls nothing of
// its caller with it, so mu comes last in any order of locks. Rows are called without it.
// The caller makes steps one at a time: from the first Set of a step to its Seal no other
// goroutine may call Set or Seal.
type Journal struct {
	rows Rows

	mu      sync.Mutex
	batch   []Change          // what is to be applied
	spare   []Change          // the memory of a batch that has been applied, for the next one
	whole   int               // how many changes of batch belong to complete steps
	written uint64            // changes so far
	sealed  uint64            // changes of complete steps so far
	cache   map[string]*entry // changes that are not in rows yet, and rows that are soon to be read
	peak    int               // of cache, as shrink.Delete has it
	stored  int               // bytes of the rows in cache that are in rows as well
	keep    int               // the largest value of stored

	taken   uint64 // changes that are durable or being applied
	applied uint64 // changes that are durable
	err     error  // why nothing more can be written
	present *round // the round that is being applied, or was the last
	next    *round // the round of callers that come now
	led     bool   // a caller applies a round, or has been signalled to
}

// New returns a journal on rows. It keeps at most keep bytes of rows in memory that are
// in rows as well; see Set and Load.
func New(rows Rows, keep int) *Journal {
	return &Journal{rows: rows, keep: keep, cache: make(map[string]*entry), next: newRound()}
}

// Set changes a key; a nil value removes it. soon says that the key will be read before
// it is changed again, so that its value is worth keeping in memory.
func (j *Journal) Set(key string, value []byte, soon bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written++
	e := j.cache[key]
	if e == nil {
		e = &entry{key: key}
		j.cache[key] = e
	} else if e.stored {
		j.stored -= len(e.value)
	}
	e.value, e.seq, e.soon, e.stored = value, j.written, soon, false
	j.batch = append(j.batch, Change{key, value, e})
}

// Get returns the value of a key, nil if there is none.
func (j *Journal) Get(key string) (value []byte, err error) {
	j.mu.Lock()
	e := j.cache[key]
	if e != nil {
		value = e.value
	}
	j.mu.Unlock()
	if e != nil {
		return value, nil
	}
	return j.rows.Get(key)
}

// GetStored returns the value of a key in rows, nil if there is none. It is for a key
// that is not in memory, as Withdraw has said.
func (j *Journal) GetStored(key string) ([]byte, error) { return j.rows.Get(key) }

// Scan calls fn for all keys in rows that begin with a letter, in their order, until fn
// returns an error. The keys are without the letter. Changes that have not been applied
// are left out.
func (j *Journal) Scan(letter string, fn func(key string, value []byte) error) (err error) {
	next := string(rune(letter[0] + 1))
	scanErr := j.rows.Scan(letter, next, false, func(key string, value []byte) bool {
		err = fn(key[len(letter):], value)
		return err == nil
	})
	if err == nil {
		err = scanErr
	}
	return err
}

// Changed reports whether a key has been set since a mark, by the present step.
func (j *Journal) Changed(key string, since uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.cache[key]
	return e != nil && e.seq > since
}

// Seal ends a step, and returns its mark. All changes of a step are applied in one batch:
// between two of them there may be no row of a task, or two.
func (j *Journal) Seal() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.whole, j.sealed = len(j.batch), j.written
	return j.written
}

// Mark returns the mark of the last change. Marks grow with each change.
func (j *Journal) Mark() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// Failed returns why nothing more can be written; nil if nothing has failed.
func (j *Journal) Failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// fail ends the journal with an error, unless it has failed before.
func (j *Journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}

// Rest returns when no batch is being applied. The caller sets nothing any more; what was
// set is durable or never will be.
func (j *Journal) Rest() {
	j.mu.Lock()
	r := j.present
	j.mu.Unlock()
	if r != nil {
		<-r.over
	}
}

// Close closes the rows, after everything else.
func (j *Journal) Close() error { return j.rows.Close() }
