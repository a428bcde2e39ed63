package machine

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/stintgo/stint/internal/shrink"
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

	mu          sync.Mutex
	batch       []Change              // what is to be applied
	spare       []Change              // one that has been, for the next
	whole       int                   // so many of them belong to steps that are complete
	written     uint64                // changes so far
	sealed      uint64                // and of complete steps
	cache       map[string]*cachedRow // changes that are not in rows yet, and rows that are soon to be read
	peak        int                   // of ahead, as shrink.Delete has it
	storedBytes int                   // bytes of the latter,
	maxStored   int                   // and how many there may be

	taken   uint64 // changes that are durable or being applied
	applied uint64 // changes that are durable
	err     error  // why nothing more can be
	present *round // that is being applied, or was the last
	next    *round // of who comes now
	led     bool   // somebody applies a round, or has been told to
}

// ahead is a change that is not in rows yet, or a row that is soon to be read. Both
// the journal and the changes of a batch point to it: to find it again takes longer
// than what is to be done with it.
type cachedRow struct {
	key    string
	value  []byte // nil if the key is removed
	seq    uint64
	soon   bool // it is to be read soon
	stored bool // it is in rows
}

// mostSpare is how large a batch may have been whose memory is kept.
const mostSpare = 4096

func newJournal(rows Rows, keep int) *journal {
	return &journal{rows: rows, maxStored: keep, cache: make(map[string]*cachedRow), next: newRound()}
}

// set changes a key; nil removes it. soon says that it will be read before it is
// changed again.
func (j *journal) set(key string, value []byte, soon bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.written++
	a := j.cache[key]
	if a == nil {
		a = &cachedRow{key: key}
		j.cache[key] = a
	} else if a.stored {
		j.storedBytes -= len(a.value)
	}
	a.value, a.seq, a.soon, a.stored = value, j.written, soon, false
	j.batch = append(j.batch, Change{a.key, value, a})
}

// get returns the value of a key, nil if there is none.
func (j *journal) get(key string) (value []byte, err error) {
	j.mu.Lock()
	a := j.cache[key]
	if a != nil {
		value = a.value
	}
	j.mu.Unlock()
	if a != nil {
		return value, nil
	}
	return j.rows.Get(key)
}

// scan calls fn for all rows of a sort, until it returns an error.
func (j *journal) scan(sort string, fn func(key string, value []byte) error) (err error) {
	next := string(rune(sort[0] + 1))
	scanErr := j.rows.Scan(sort, next, false, func(key string, value []byte) bool {
		err = fn(key[len(sort):], value)
		return err == nil
	})
	if err == nil {
		err = scanErr
	}
	return err
}

// changed reports whether a key has been set since a mark, by the step that is being
// made.
func (j *journal) changed(key string, since uint64) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	a := j.cache[key]
	return a != nil && a.seq > since
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

// mark is that of the last change.
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

// sync returns when the changes up to a mark, which are those of complete steps,
// are durable, with errLeft when leave is closed, or with errStalled when stalled is.
// They may become durable then all the same.
func (j *journal) sync(mark uint64, leave, stalled <-chan struct{}) error {
	r, role, err := j.join(mark)
	if r == nil {
		return err
	}
	if role != leads {
		select {
		case <-r.over:
			return r.err
		case <-r.lead:
		case <-leave:
			return j.left(r, role, errLeft)
		case <-stalled:
			return j.left(r, role, errStalled)
		}
	}
	if leave == nil && stalled == nil {
		j.apply(r)
		return r.err
	}
	go j.apply(r) // a full disk may keep it for long
	select {
	case <-r.over:
		return r.err
	case <-leave:
		return errLeft
	case <-stalled:
		return errStalled
	}
}

// left takes a caller that waits no longer out of a round, and returns err, unless the
// round is over.
func (j *journal) left(r *round, as role, err error) error {
	select {
	case <-r.over:
		return r.err
	default:
	}
	if as == follows {
		j.leave(r)
	}
	return err
}

// The errors of a caller that does not wait any longer: because it leaves, or because
// the rows take no more at present.
var (
	errLeft    = errors.New("left")
	errStalled = errors.New("stalled")
)

// role is what somebody does in a round.
type role int

const (
	leads     role = iota // applies it
	follows               // may be told to lead
	comesLate             // waits for one that is being applied
)

// join returns the round in which the changes up to a mark become durable, and
// what the caller does in it; no round if they are, or never will be.
func (j *journal) join(mark uint64) (r *round, as role, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.applied >= mark:
		return nil, 0, nil
	case j.err != nil:
		return nil, 0, j.err
	case mark <= j.taken:
		return j.present, comesLate, nil
	case !j.led:
		j.led = true
		return j.next, leads, nil
	}
	j.next.waiting++
	return j.next, follows, nil
}

// leave takes a follower out of a round. If it was just told to lead, another one
// is, or whoever comes next.
func (j *journal) leave(r *round) {
	j.mu.Lock()
	defer j.mu.Unlock()
	r.waiting--
	select {
	case <-r.lead:
		if j.led = r.waiting > 0; j.led {
			r.lead <- struct{}{}
		}
	default:
	}
}

// apply applies the changes of all steps that are complete, which is the round's.
func (j *journal) apply(r *round) {
	if j.inCompany(r) {
		// Those who were just told of the last batch have more to write, and are about
		// to: without this, every other batch would be of one caller's changes.
		runtime.Gosched()
	}
	batch, err := j.take(r)
	if err == nil {
		if err = j.rows.Apply(batch); err != nil {
			err = fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
			j.fail(err)
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		j.applied = j.taken
		j.forget(batch)
	}
	r.err = err
	close(r.over)
	if j.led = j.next.waiting > 0; j.led {
		j.next.lead <- struct{}{}
	}
}

// inCompany reports whether others than the one who applies a round may be about to
// write: some wait with him, or did for the one before, or he came while that was being
// applied. Whoever is alone does not wait until those who read what he wrote have done so.
func (j *journal) inCompany(r *round) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return r.waiting > 0 || j.present != nil && j.present.waiting > 0
}

// rest returns when no batch is being applied. Nothing is set any more, and what
// was is durable or never will be.
func (j *journal) rest() {
	j.mu.Lock()
	r := j.present
	j.mu.Unlock()
	if r != nil {
		<-r.over
	}
}

// take begins a round with the changes of the steps that are complete: who comes
// now is in the next one.
func (j *journal) take(r *round) (batch []Change, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	batch, j.taken = j.batch[:j.whole], j.sealed
	j.batch, j.spare, j.whole = append(j.spare, j.batch[j.whole:]...), nil, 0
	j.present, j.next = r, newRound()
	return batch, j.err
}

// forget drops what is in rows now, but for what there is room to keep. The caller
// holds mu.
func (j *journal) forget(batch []Change) {
	for _, c := range batch {
		switch a := c.cached; {
		case a.seq > j.applied || a.stored:
		case a.soon && j.storedBytes+len(a.value) <= j.maxStored-j.maxStored/prefetchShare:
			a.stored = true
			j.storedBytes += len(a.value)
		default:
			shrink.Delete(&j.cache, &j.peak, a.key)
		}
	}
	if cap(batch) <= mostSpare {
		clear(batch)
		j.spare = batch[:0]
	}
}

// round is one batch and those who wait for it. One of them applies it; the others
// are told at once, so that those who are done never stand in line behind those
// who wait for the next.
type round struct {
	waiting int           // who came while another was being applied, also if he applies this one; guarded by mu
	lead    chan struct{} // receives when one of them is to apply it
	over    chan struct{} // closed when it is done
	err     error         // set before that
}

func newRound() *round { return &round{lead: make(chan struct{}, 1), over: make(chan struct{})} }
