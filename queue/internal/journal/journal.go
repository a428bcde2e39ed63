// Package journal is group commit: it turns what many callers write into few batches of
// rows, and keeps in memory what is not in the rows yet.
//
//   - rows.go: [Rows], the interface of four methods that a store implements, [KeyReader], of
//     one more that it may implement, and [Change].
//   - journal.go: [Journal], its changes, marks and steps.
//   - round.go: the rounds in which callers wait for a batch, and one of them applies it.
//   - cache.go: changes that are not in rows yet, and rows that stay in memory because they are
//     likely to be read soon.
//   - stored.go: [Stored], reads of the rows alone.
package journal

import (
	"sync"
)

// Journal collects the changes of steps and applies them to Rows in batches. A caller
// that needs its changes to be durable applies the changes of all callers, unless a batch
// is being applied already. So all callers that wait share one sync, and no caller delays
// its batch to collect more changes.
//
// Get returns a change before it is applied: a step is decided on the changes of the
// steps before it, and answered when its own are durable. The first error of Rows ends
// the journal; see Failed.
//
// All methods are safe for concurrent use. Each locks mu itself and calls no code of its
// caller while it holds mu, so mu is last in any lock order. Rows are called without mu.
// Steps must not overlap: from the first Set of a step to its Seal, no other goroutine
// may call Set or Seal.
type Journal struct {
	rows Rows

	mu      sync.Mutex
	batch   []Change // changes to apply
	spare   []Change // the array of an applied batch, for reuse
	sealedN int      // the number of changes of batch that belong to complete steps
	written uint64   // changes so far
	values  uint64   // changes so far that set a value
	sealed  uint64   // changes of complete steps so far
	cache   cache

	taken   uint64 // changes that are durable or being applied
	applied uint64 // changes that are durable
	err     error  // why nothing more can be written
	present *round // the round that is being applied, or the last one
	next    *round // the round of callers that arrive now
	led     bool   // a caller applies a round, or has been signalled to
}

// New returns a journal on rows. keep limits the memory, in bytes, for values that are in
// rows as well; see Set and Load.
func New(rows Rows, keep int) *Journal {
	return &Journal{rows: rows, cache: newCache(keep), next: newRound()}
}

// Set sets the value of a key; nil removes the key. soon says that the key will be read
// before it is changed again, so that the value stays in memory while there is room.
func (j *Journal) Set(key string, value []byte, soon bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written++
	if value != nil {
		j.values++
	}
	j.batch = append(j.batch, Change{key, value, j.cache.set(key, value, j.written, soon)})
}

// Get returns the value of a key, nil if there is none.
func (j *Journal) Get(key string) (value []byte, err error) {
	j.mu.Lock()
	e := j.cache.entries[key]
	if e != nil {
		value = e.value
	}
	j.mu.Unlock()
	if e != nil {
		return value, nil
	}
	return j.rows.Get(key)
}

// Stored returns the rows without the changes in memory.
func (j *Journal) Stored() Stored { return Stored{j.rows} }

// Changed reports whether key has been set after the mark since.
func (j *Journal) Changed(key string, since uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.cache.entries[key]
	return e != nil && e.seq > since
}

// Seal ends a step and returns its mark. All changes of a step are applied in one batch,
// because between two of them a task may have no row, or two.
func (j *Journal) Seal() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sealedN, j.sealed = len(j.batch), j.written
	return j.written
}

// Values returns how many changes so far have set a value, and not removed a key.
func (j *Journal) Values() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.values
}

// Mark returns the mark of the last change. Each change has a higher mark than the one
// before.
func (j *Journal) Mark() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// Durable returns the mark up to which all changes are durable.
func (j *Journal) Durable() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.applied
}

// Failed returns the error that ended the journal, or nil.
func (j *Journal) Failed() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// fail ends the journal with err, unless it has already failed.
func (j *Journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}

// Rest blocks until no batch is being applied. The caller must not call Set afterwards;
// changes that are not durable then never will be.
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
