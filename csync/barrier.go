package csync

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// ErrBroken is wrapped by the errors of a barrier that a party has left, or that
// was broken otherwise. The text says by what.
var ErrBroken = errors.New("csync: barrier is broken")

// The other causes of a broken barrier.
var (
	errReset  = errors.New("it was reset")
	errLeft   = errors.New("the context of a party has ended")
	errAction = errors.New("its action did not return")
)

// yields is how often a party that has to wait lets other goroutines run before
// it goes to sleep. Parties tend to arrive together, and one turn of the run
// queue costs a third of going to sleep and being woken. A second turn helps
// where not all were runnable; more only take time from others.
const yields = 2

// Barrier is where a fixed number of parties wait for each other: none goes on
// until all have arrived. Then it starts a new cycle by itself, for the next
// round of the same parties or others.
//
// In each cycle either all parties pass or none does. A party whose context ends
// breaks the barrier, because the others would wait for it in vain: they get
// [ErrBroken], and so does every call until [Barrier.Reset].
//
// A barrier is made by [NewBarrier]. All methods may be called from many
// goroutines.
type Barrier struct {
	parties int    // immutable
	action  func() // immutable; may be nil

	mu      sync.Mutex      // guards what follows; taken last, never held while waiting
	era     *era            // since the last Reset
	arrived int             // in this cycle
	acting  bool            // all have arrived, and the action runs
	asleep  queue[struct{}] // calls of the cycle that sleep
	early   queue[struct{}] // calls that wait for the action before they arrive
}

// era is the time from one Reset to the next: some cycles that were passed, and
// then perhaps one that was broken. Parties keep the era in which they arrived.
// So each can read what became of its cycle without the mutex, however late it
// is and whatever the barrier has gone through since.
type era struct {
	// state is twice the number of cycles passed, plus 1 once a cycle is broken.
	// It is one word so that a party sees both as they were at one moment, and
	// final when it is odd.
	state atomic.Uint64
	err   error // what the parties of the broken cycle get; set before state is odd
}

// passed returns the number of cycles passed.
func (e *era) passed() uint64 { return e.state.Load() / 2 }

// broken returns nil, or what the parties of the broken cycle get.
func (e *era) broken() error {
	if e.state.Load()%2 == 0 {
		return nil
	}
	return e.err
}

// ended reports whether a cycle is over, given the number of those passed before
// it, and with which result.
func (e *era) ended(before uint64) (bool, error) {
	switch state := e.state.Load(); {
	case state/2 > before:
		return true, nil
	case state%2 == 1:
		return true, e.err
	}
	return false, nil
}

// NewBarrier returns a barrier for a number of parties, and panics if it is less
// than 1. The action may be nil. It is called once in each cycle by the party
// that arrives last, before any party goes on; so it may look at what all of
// them have done, and prepare their next round. If it panics or calls
// [runtime.Goexit], the barrier is broken for the others.
func NewBarrier(parties int, action func()) *Barrier {
	if parties < 1 {
		panic(fmt.Sprintf("csync: a barrier for %d parties; use 1 or more", parties))
	}
	return &Barrier{parties: parties, action: action, era: new(era)}
}

// Wait arrives at the barrier, and waits until all parties have and the action
// is done. It returns the place in which this party arrived: 0 for the first,
// and one less than the number of parties for the last.
//
// If ctx ends before, also before the call, Wait breaks the barrier and returns
// [context.Cause] of ctx; but not while it runs the action, which must look after
// its end itself. If the barrier is broken, before or while it waits, the error
// wraps [ErrBroken]. With an error the place is 0.
//
// When more goroutines call Wait than there are parties, those too many belong to
// the next cycle; they wait for the action before they arrive.
func (b *Barrier) Wait(ctx context.Context) (place int, err error) {
	if err := b.enter(ctx); err != nil {
		return 0, err
	}
	e, before := b.era, b.era.passed()
	place = b.arrived
	b.arrived++
	if b.arrived == b.parties {
		err = b.pass(e)
	} else {
		b.mu.Unlock()
		err = b.await(ctx, e, before)
	}
	if err != nil {
		return 0, err
	}
	return place, nil
}

// Break breaks the barrier as a party that leaves does. It is for a party that
// cannot come any more. The others get an error that wraps [ErrBroken] and has
// the text of cause. Breaking a broken barrier changes nothing.
func (b *Barrier) Break(cause error) {
	b.mu.Lock()
	b.breakAndUnlock(cause)
}

// Reset returns the barrier to its initial state. Calls that wait at it get an error that
// wraps [ErrBroken]. Later calls wait for an action that still runs.
func (b *Barrier) Reset() {
	b.mu.Lock()
	old := b.era
	b.era = new(era)
	b.endAndUnlock(old, errReset)
}

// Waiting returns how many parties have arrived and wait at the moment.
func (b *Barrier) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.arrived
}

// enter returns nil, with mu held, when the party may arrive.
func (b *Barrier) enter(ctx context.Context) error {
	b.mu.Lock()
	for b.acting && b.era.broken() == nil && ctx.Err() == nil {
		w := b.early.push(ctx.Done(), struct{}{})
		b.mu.Unlock()
		b.early.wait(ctx, &b.mu, w)
		b.early.recycle(w)
	}
	if ctx.Err() != nil {
		b.breakAndUnlock(context.Cause(ctx))
		return context.Cause(ctx)
	}
	if err := b.era.broken(); err != nil {
		b.mu.Unlock()
		return err
	}
	return nil
}

// await waits for the end of the cycle, or breaks the barrier when ctx ends.
func (b *Barrier) await(ctx context.Context, e *era, before uint64) error {
	for range yields {
		runtime.Gosched()
		if over, err := e.ended(before); over {
			return err
		}
	}
	b.mu.Lock()
	if over, err := e.ended(before); over {
		b.mu.Unlock()
		return err
	}
	w := b.asleep.push(ctx.Done(), struct{}{})
	b.mu.Unlock()
	woken := b.asleep.wait(ctx, &b.mu, w)
	left := w.dropped
	b.asleep.recycle(w)
	if left { // the last party has broken the barrier
		b.mu.Unlock()
		return context.Cause(ctx)
	}
	if !woken {
		b.breakAndUnlock(context.Cause(ctx))
		return context.Cause(ctx)
	}
	b.mu.Unlock()
	_, err := e.ended(before)
	return err
}

// pass ends the cycle as its last party. It is called with mu, and releases it.
func (b *Barrier) pass(e *era) error {
	waiting := b.asleep.len
	if b.asleep.dropEnded(); b.asleep.len < waiting {
		b.endAndUnlock(e, errLeft)
		return e.err
	}
	if b.action != nil {
		b.act(e)
	}
	if err := e.broken(); err != nil { // while the action ran
		b.mu.Unlock()
		return err
	}
	b.endAndUnlock(e, nil)
	return nil
}

// act runs the action of the cycle. It is called with mu, releases it meanwhile,
// and returns with it held. If the action does not return, neither does act, and
// the cycle is broken.
func (b *Barrier) act(e *era) {
	b.acting = true
	b.mu.Unlock()
	returned := false
	defer func() {
		b.mu.Lock()
		b.acting = false
		b.early.grant(b.early.len).wake()
		if !returned {
			b.endAndUnlock(e, errAction)
		}
	}()
	b.action()
	returned = true
}

// breakAndUnlock ends the cycle of the present era, and the era with it, unless
// it is broken already.
func (b *Barrier) breakAndUnlock(cause error) {
	b.endAndUnlock(b.era, cause)
}

// endAndUnlock ends the cycle of e: it is passed, or broken if there is a cause.
// It releases mu and wakes all: the early ones look again.
func (b *Barrier) endAndUnlock(e *era, cause error) {
	switch {
	case cause == nil:
		e.state.Add(2)
	case e.broken() == nil:
		// The cause is there as text only: to the others, the end of one party's
		// context must not look like the end of their own.
		e.err = fmt.Errorf("%w: %v", ErrBroken, cause) //nolint:errorlint // see above
		e.state.Add(1)
	}
	b.arrived = 0
	asleep, early := b.asleep.grant(b.asleep.len), b.early.grant(b.early.len)
	b.mu.Unlock()
	asleep.wake()
	early.wake()
}
