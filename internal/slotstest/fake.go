// Package slotstest holds a contract suite for implementations of
// [stint.Slots], and a fake implementation with faults that a test can switch on. Slots
// in shared memory and in a cluster pass the same suite.
package slotstest

import (
	"slices"
	"sync"

	"github.com/stintgo/stint"
)

// Pool is slots that are shared by participants of one process. It stands for
// shared memory or a cluster, and can be made slow, made to fail, or made to lose its
// grants. All methods are safe for concurrent use.
type Pool struct {
	mu      sync.Mutex
	limit   int
	last    stint.Grant
	members []*Fake
	broken  error // TryAcquire returns it instead of a slot
}

// NewPool returns a pool of limit slots.
func NewPool(limit int) *Pool { return &Pool{limit: limit} }

// Join adds a participant.
func (p *Pool) Join(name string) *Fake {
	f := &Fake{pool: p, name: name, held: map[stint.Grant]bool{}, losing: map[stint.Grant]bool{}}
	p.mu.Lock()
	p.members = append(p.members, f)
	p.mu.Unlock()
	return f
}

// Resize changes the number of slots and notifies the participants that wait.
func (p *Pool) Resize(limit int) {
	p.mu.Lock()
	p.limit = limit
	notify := p.waitingLocked()
	p.mu.Unlock()
	call(notify)
}

// Break makes TryAcquire return err to all participants from now on, and notifies those
// that wait; nil ends that.
func (p *Pool) Break(err error) {
	p.mu.Lock()
	p.broken = err
	notify := p.waitingLocked()
	p.mu.Unlock()
	call(notify)
}

// waitingLocked returns the functions that notify the waiting participants, the one with
// the highest tier first.
func (p *Pool) waitingLocked() (notify []func()) {
	waiting := slices.DeleteFunc(slices.Clone(p.members), func(f *Fake) bool { return f.waiting == 0 || f.busy })
	slices.SortStableFunc(waiting, func(f, g *Fake) int { return int(g.tier) - int(f.tier) })
	for _, f := range waiting {
		notify = append(notify, f.offer)
	}
	return notify
}

// offer notifies the participant. If it does not ask for a slot then, it is busy: an
// implementation may leave it alone.
func (f *Fake) offer() {
	f.pool.mu.Lock()
	f.asked = false
	f.pool.mu.Unlock()
	f.notify()
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	f.busy = !f.asked && f.waiting > 0
}

func (p *Pool) runningLocked() (n int) {
	for _, f := range p.members {
		n += len(f.held)
	}
	return n
}

func call(fns []func()) {
	for _, fn := range fns {
		fn()
	}
}

// Fake is one participant of a [Pool]: the Slots of one scheduler.
type Fake struct {
	pool *Pool
	name string

	// Guarded by the pool's mu.
	notify  func()
	lost    func(stint.Grant, error)
	held    map[stint.Grant]bool
	losing  map[stint.Grant]bool // taken away; the scheduler is about to be notified
	tier    stint.Priority
	waiting int
	wants   []Want
	tries   int
	misuse  []string
	asked   bool // TryAcquire was called since the last notification began
	busy    bool // it did not use a notification: it gets none until it asks and finds no slot, or stops waiting
	slow    bool
	fetched stint.Grant // a slot that a slow participant has requested and received
}

// Want is one call of [stint.Slots.Want].
type Want struct {
	Tier    stint.Priority
	Waiting int
}

var _ stint.Slots = (*Fake)(nil)

// Bind sets the functions that notify the participant.
func (f *Fake) Bind(notify func(), lost func(stint.Grant, error)) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	if f.notify != nil {
		f.misuse = append(f.misuse, "Bind was called twice")
	}
	f.notify, f.lost = notify, lost
}

// TryAcquire takes a slot if one is free. A slow participant only requests it, and is
// notified when it has arrived.
func (f *Fake) TryAcquire(stint.Priority) (stint.Grant, error) {
	p := f.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	f.tries++
	f.asked = true
	if grant := f.fetched; grant != 0 {
		f.fetched = 0
		return grant, nil
	}
	if p.broken != nil {
		return 0, p.broken
	}
	if p.runningLocked() >= p.limit {
		f.busy = false
		return 0, stint.ErrNoSlot
	}
	p.last++
	f.held[p.last] = true
	if f.slow {
		f.fetched = p.last
		f.busy = false
		go f.notify()
		return 0, stint.ErrNoSlot
	}
	return p.last, nil
}

// Release releases a grant, and notifies the participants that wait while a slot is free, from
// another goroutine because the caller holds its scheduler's lock.
func (f *Fake) Release(grant stint.Grant) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	if f.losing[grant] {
		return // the scheduler is not notified of the loss yet
	}
	if !f.held[grant] {
		f.misuse = append(f.misuse, "Release of a grant that is not held")
		return
	}
	f.freeLocked(grant)
}

func (f *Fake) freeLocked(grant stint.Grant) {
	delete(f.held, grant)
	go f.pool.offer()
}

// offer notifies the participants that wait, if a slot is free.
func (p *Pool) offer() {
	p.mu.Lock()
	var notify []func()
	if p.runningLocked() < p.limit {
		notify = p.waitingLocked()
	}
	p.mu.Unlock()
	call(notify)
}

// Want records the waiters. A requested slot that arrived after they stopped waiting is
// released; if a slot was free before they began to wait, the participant is notified.
func (f *Fake) Want(tier stint.Priority, waiting int) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	if f.waiting == 0 && waiting > 0 && (f.pool.runningLocked() < f.pool.limit || f.pool.broken != nil) {
		go f.offer()
	}
	f.tier, f.waiting = tier, waiting
	f.busy = f.busy && waiting > 0
	f.wants = append(f.wants, Want{tier, waiting})
	if waiting == 0 && f.fetched != 0 {
		f.freeLocked(f.fetched)
		f.fetched = 0
	}
}

// Usage returns the holders of slots and the waiters.
func (f *Fake) Usage() stint.Usage {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	u := stint.Usage{Max: f.pool.limit, Running: f.pool.runningLocked()}
	if f.pool.broken != nil {
		u.Err = f.pool.broken.Error()
	}
	for _, m := range f.pool.members {
		u.Waiting += m.waiting
		u.Holders = append(u.Holders, stint.Holder{Name: m.name, Slots: len(m.held), Waiting: m.waiting})
	}
	return u
}

// SetSlow makes the participant behave as if slots came from another machine: TryAcquire
// reports that no slot is free, and notifies when the slot has arrived.
func (f *Fake) SetSlow(slow bool) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	f.slow = slow
}

// Lose takes away every slot that the participant holds, like a lease that expires, and
// notifies the participants that wait.
func (f *Fake) Lose(cause error) {
	f.pool.mu.Lock()
	var grants []stint.Grant
	for grant := range f.held {
		grants = append(grants, grant)
		f.losing[grant] = true
	}
	clear(f.held)
	f.fetched = 0
	notify := f.pool.waitingLocked()
	f.pool.mu.Unlock()
	for _, grant := range grants {
		f.lost(grant, cause)
		f.pool.mu.Lock()
		delete(f.losing, grant)
		f.pool.mu.Unlock()
	}
	call(notify)
}

// Held returns how many slots the participant holds.
func (f *Fake) Held() int {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	return len(f.held)
}

// Tries returns the number of calls of TryAcquire so far.
func (f *Fake) Tries() int {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	return f.tries
}

// Wants returns the calls of Want so far.
func (f *Fake) Wants() []Want {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	return slices.Clone(f.wants)
}

// Misuse returns how the scheduler has broken the contract: a second call of Bind, or a
// grant released twice, or after it was lost.
func (f *Fake) Misuse() []string {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	return slices.Clone(f.misuse)
}
