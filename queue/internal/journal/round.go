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
	lead    chan struct{} // receives when one of them is to apply the round
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

// Sync returns when the changes up to a mark, which are those of complete steps, are
// durable; with ErrLeft when leave is closed, or with ErrStalled when stalled is. They
// may become durable then all the same.
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
	go j.apply(r) // a full disk may keep it for long
	select {
	case <-r.over:
		return r.err
	case <-leave:
		return ErrLeft
	case <-stalled:
		return ErrStalled
	}
}

// left takes a caller that waits no longer out of a round, and returns err, unless the
// round is over.
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
	leads     role = iota // applies it
	follows               // waits for it, and applies it when signalled to
	comesLate             // waits for a round that is being applied
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

// leave takes a follower out of a round. If it has just been signalled to lead, another
// follower is, or the next caller leads.
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
	if j.inCompany(r) {
		// Callers that were just woken by the last batch have more to write, and are
		// about to: without this, every other batch would be of one caller's changes.
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

// inCompany reports whether other callers than the one that applies a round are probably
// about to write: some wait for this round, or waited for the one before. A caller that
// is alone does not yield to the goroutines that read what it wrote.
func (j *Journal) inCompany(r *round) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return r.waiting > 0 || j.present != nil && j.present.waiting > 0
}

// take begins a round with the changes of the complete steps. Callers that come from now
// on are in the next round.
func (j *Journal) take(r *round) (batch []Change, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	batch, j.taken = j.batch[:j.whole], j.sealed
	j.batch, j.spare, j.whole = append(j.spare, j.batch[j.whole:]...), nil, 0
	j.present, j.next = r, newRound()
	return batch, j.err
}
