package journal

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/stintgo/stint/queue"
)

// round is one batch and the callers that wait for it. One of them applies it. The others
// are all woken at once when it is over, so that callers whose changes are durable never
// queue behind callers that wait for the next batch.
type round struct {
	// waiting is how many callers came while another round was being applied, the one
	// that applies this round included; guarded by mu of the journal.
	waiting int
	lead    chan struct{} // has a value when one of the waiting callers must apply the round
	over    chan struct{} // closed when the round has been applied
	err     error         // set before over is closed
}

func newRound() *round { return &round{lead: make(chan struct{}, 1), over: make(chan struct{})} }

var (
	// ErrLeft is returned by Sync when leave is closed before the changes are durable.
	ErrLeft = errors.New("left")
	// ErrStalled is returned by Sync when stalled is closed before the changes are
	// durable.
	ErrStalled = errors.New("stalled")
)

// Sync blocks until the changes up to mark, the mark of a complete step, are durable. It
// returns ErrLeft when leave is closed and ErrStalled when stalled is closed; the changes
// may become durable afterwards.
func (j *Journal) Sync(mark uint64, leave, stalled <-chan struct{}) error {
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
			return j.left(r, role, ErrLeft)
		case <-stalled:
			return j.left(r, role, ErrStalled)
		}
	}
	if leave == nil && stalled == nil {
		j.apply(r)
		return r.err
	}
	go j.apply(r) // may block for long, for example on a full disk
	select {
	case <-r.over:
		return r.err
	case <-leave:
		return ErrLeft
	case <-stalled:
		return ErrStalled
	}
}

// left removes a caller that no longer waits from round r and returns err. If the round
// is over, it returns the error of the round.
func (j *Journal) left(r *round, as role, err error) error {
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

// role is what a caller does in a round.
type role int

const (
	leads     role = iota // applies the round
	follows               // waits for the round, and applies it when signalled
	comesLate             // waits for the round that is being applied
)

// join returns the round in which the changes up to a mark become durable, and the role
// of the caller in it. It returns no round if they are durable, or never will be.
func (j *Journal) join(mark uint64) (r *round, as role, err error) {
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

// leave removes a follower from round r. If the follower has just been signalled to lead,
// leave signals another follower; without one, the next caller leads.
func (j *Journal) leave(r *round) {
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

// apply applies the changes of all complete steps as round r.
func (j *Journal) apply(r *round) {
	if j.othersWrite(r) {
		// Callers that the last batch woke are about to write again. Without this yield,
		// every second batch would contain the changes of a single caller.
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
		j.cache.forget(batch, j.applied)
		j.reuse(batch)
	}
	r.err = err
	close(r.over)
	if j.led = j.next.waiting > 0; j.led {
		j.next.lead <- struct{}{}
	}
}

// othersWrite reports whether other callers are probably about to write, because some
// wait for this round or waited for the one before. A single writer does not yield,
// because it would yield to the goroutines that read what it wrote.
func (j *Journal) othersWrite(r *round) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return r.waiting > 0 || j.present != nil && j.present.waiting > 0
}

// take begins round r with the changes of all complete steps, and returns them. Later
// callers join the next round.
func (j *Journal) take(r *round) (batch []Change, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	batch, j.taken = j.batch[:j.sealedN], j.sealed
	j.batch, j.spare, j.sealedN = append(j.spare, j.batch[j.sealedN:]...), nil, 0
	j.present, j.next = r, newRound()
	return batch, j.err
}

// maxSpare is the largest capacity, in changes, of a batch that is reused.
const maxSpare = 4096

// reuse keeps the array of a batch that has been applied for a later one. The caller must
// hold mu.
func (j *Journal) reuse(batch []Change) {
	if cap(batch) <= maxSpare {
		clear(batch)
		j.spare = batch[:0]
	}
}
