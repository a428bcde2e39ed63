package csync

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// ErrBroken is wrapped by the errors of a barrier that a party has left, or that was
// broken otherwise. The message names the cause.
var ErrBroken = errors.New("csync: barrier is broken")

// The other causes of a broken barrier.
var (
	errReset  = errors.New("it was reset")
	errLeft   = errors.New("the context of a party has ended")
	errAction = errors.New("its action did not return")
)

// yields is how often a waiting party lets other goroutines run before it sleeps. Parties
// tend to arrive together, and yielding once costs a third of what a sleep and a wake-up
// cost. A second turn helps if not all parties were runnable; more turns only take
// time from others.
const yields = 2

// Barrier is a point at which a fixed number of parties wait until all have arrived. Then
// it starts a new cycle by itself, for the next round of the same parties or others.
//
// In each cycle either all parties pass or none does. A party whose context ends breaks
// the barrier, because the others would wait for it for ever: they get [ErrBroken], and so
// does every call until [Barrier.Reset].
//
// [NewBarrier] makes a barrier; the methods of the zero value panic. All methods are safe
// for concurrent use.
type Barrier struct {
	parties int    // immutable
	action  func() // immutable; may be nil

	mu         sync.Mutex      // guards what follows; taken last, never held while waiting
	generation *generation     // since the last Reset
	arrived    int             // in this cycle
	acting     bool            // all have arrived, and the action runs
	asleep     queue[struct{}] // calls of the cycle that sleep
	early      queue[struct{}] // calls that wait for the action before they arrive
}

// generation is the time from one Reset to the next: some cycles that have passed, and
// then perhaps a broken one. A party keeps the generation in which it arrived, so that it
// can read the result of its cycle without the mutex, at any later time.
type generation struct {
	// state is twice the number of passed cycles, plus 1 when a cycle is broken. It is
	// one word, so that a party reads both at once. It is final when it is odd.
	state atomic.Uint64
	err   error // the error of the broken cycle; set before state is odd
}

// passed returns the number of cycles passed.
func (g *generation) passed() uint64 { return g.state.Load() / 2 }

// broken returns the error of the broken cycle, or nil.
func (g *generation) broken() error {
	if g.state.Load()%2 == 0 {
		return nil
	}
	return g.err
}

// ended reports whether a cycle has ended, given the number of passed cycles before it,
// and its result.
func (g *generation) ended(before uint64) (bool, error) {
	switch state := g.state.Load(); {
	case state/2 > before:
		return true, nil
	case state%2 == 1:
		return true, g.err
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
	return &Barrier{parties: parties, action: action, generation: new(generation)}
}

// lock locks mu, and panics if b is the zero Barrier or nil.
func (b *Barrier) lock() {
	if b == nil || b.parties == 0 {
		panic("csync: zero Barrier: make one with NewBarrier")
	}
	b.mu.Lock()
}

// Wait arrives at the barrier, and waits until all parties have and the action
// is done. It returns the place in which this party arrived: 0 for the first,
// and one less than the number of parties for the last.
//
// If ctx ends before, also before the call, Wait breaks the barrier and returns
// [context.Cause] of ctx; except while it runs the action, which must check ctx
// itself. If the barrier is broken, before or while it waits, the error wraps
// [ErrBroken]. With an error the place is 0.
//
// When more goroutines call Wait than there are parties, the excess calls belong to
// the next cycle; they wait for the action before they arrive. If the context of such a
// call ends while it waits, it breaks the cycle whose action runs.
func (b *Barrier) Wait(ctx context.Context) (place int, err error) {
	if err := b.enter(ctx); err != nil {
		return 0, err
	}
	g, before := b.generation, b.generation.passed()
	place = b.arrived
	b.arrived++
	if b.arrived == b.parties {
		err = b.pass(g)
	} else {
		b.mu.Unlock()
		err = b.await(ctx, g, before)
	}
	if err != nil {
		return 0, err
	}
	return place, nil
}

// Break breaks the barrier, as the end of a party's context does. It is for a party that
// will not arrive any more. The others get an error that wraps [ErrBroken] and has
// the text of cause. Breaking a broken barrier changes nothing.
func (b *Barrier) Break(cause error) {
	b.lock()
	b.breakAndUnlock(cause)
}

// Reset returns the barrier to its initial state. Calls that wait at it get an error that
// wraps [ErrBroken]. Later calls wait for an action that still runs.
func (b *Barrier) Reset() {
	b.lock()
	old := b.generation
	b.generation = new(generation)
	b.endAndUnlock(old, errReset)
}

// Waiting returns how many parties have arrived and wait at the moment.
func (b *Barrier) Waiting() int {
	b.lock()
	defer b.mu.Unlock()
	return b.arrived
}

// enter returns nil, with mu held, when the party may arrive.
func (b *Barrier) enter(ctx context.Context) error {
	b.lock()
	for b.acting && b.generation.broken() == nil && ctx.Err() == nil {
		w := b.early.push(ctx.Done(), struct{}{})
		b.mu.Unlock()
		b.early.wait(ctx, &b.mu, w)
		b.early.recycle(w)
	}
	if ctx.Err() != nil {
		b.breakAndUnlock(context.Cause(ctx))
		return context.Cause(ctx)
	}
	if err := b.generation.broken(); err != nil {
		b.mu.Unlock()
		return err
	}
	return nil
}

// await waits for the end of the cycle, or breaks the barrier when ctx ends.
func (b *Barrier) await(ctx context.Context, g *generation, before uint64) error {
	for range yields {
		runtime.Gosched()
		if over, err := g.ended(before); over {
			return err
		}
	}
	b.mu.Lock()
	if over, err := g.ended(before); over {
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
	_, err := g.ended(before)
	return err
}

// pass ends the cycle as its last party. It is called with mu, and releases it.
func (b *Barrier) pass(g *generation) error {
	waiting := b.asleep.len
	if b.asleep.dropEnded(); b.asleep.len < waiting {
		b.endAndUnlock(g, errLeft)
		return g.err
	}
	if b.action != nil {
		b.act(g)
	}
	if err := g.broken(); err != nil { // while the action ran
		b.mu.Unlock()
		return err
	}
	b.endAndUnlock(g, nil)
	return nil
}

// act runs the action of the cycle. It is called with mu, releases it meanwhile,
// and returns with it held. If the action does not return, neither does act, and
// the cycle is broken.
func (b *Barrier) act(g *generation) {
	b.acting = true
	b.mu.Unlock()
	returned := false
	defer func() {
		b.mu.Lock()
		b.acting = false
		b.early.grant(b.early.len).wake()
		if !returned {
			b.endAndUnlock(g, errAction)
		}
	}()
	b.action()
	returned = true
}

// breakAndUnlock breaks the present generation, unless it is broken already.
func (b *Barrier) breakAndUnlock(cause error) {
	b.endAndUnlock(b.generation, cause)
}

// endAndUnlock ends the cycle of g: it has passed, or is broken if there is a cause. It
// releases mu and wakes all waiters: early calls look again.
func (b *Barrier) endAndUnlock(g *generation, cause error) {
	switch {
	case cause == nil:
		g.state.Add(2)
	case g.broken() == nil:
		// The cause is there as text only: to the others, the end of one party's
		// context must not look like the end of their own.
		g.err = fmt.Errorf("%w: %v", ErrBroken, cause) //nolint:errorlint // see above
		g.state.Add(1)
	}
	b.arrived = 0
	asleep, early := b.asleep.grant(b.asleep.len), b.early.grant(b.early.len)
	b.mu.Unlock()
	asleep.wake()
	early.wake()
}
