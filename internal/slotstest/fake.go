// Package slotstest holds a contract suite for implementations of
// [stint.Slots], and a fake one that can be told to misbehave. Slots in shared
// memory and in a cluster pass the same suite.
package slotstest

import (
	"slices"
	"sync"

	"github.com/stintgo/stint"
)

// Pool is slots that are shared by participants of one process. It stands for
// shared memory or a cluster, and can be made slow, broken, or to lose what it
// has granted. All methods are safe for concurrent use.
type Pool struct {
	mu      sync.Mutex
	limit   int
	last    stint.Grant
	members []*Fake
	broken  error // what TryAcquire answers instead of a slot
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

// Resize changes the number of slots and tells who waits.
func (p *Pool) Resize(limit int) {
	p.mu.Lock()
	p.limit = limit
	notify := p.waitingLocked()
	p.mu.Unlock()
	call(notify)
}

// Break makes TryAcquire answer err to everybody from now on, and tells who
// waits; nil mends it.
func (p *Pool) Break(err error) {
	p.mu.Lock()
	p.broken = err
	notify := p.waitingLocked()
	p.mu.Unlock()
	call(notify)
}

// waitingLocked returns how to tell the participants that have somebody
// waiting, the one with the highest tier first.
func (p *Pool) waitingLocked() (notify []func()) {
	waiting := slices.DeleteFunc(slices.Clone(p.members), func(f *Fake) bool { return f.waiting == 0 })
	slices.SortStableFunc(waiting, func(f, g *Fake) int { return int(g.tier) - int(f.tier) })
	for _, f := range waiting {
		notify = append(notify, f.notify)
	}
	return notify
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
	losing  map[stint.Grant]bool // taken away, which the scheduler is about to be told
	tier    stint.Priority
	waiting int
	wants   []Want
	tries   int
	misuse  []string
	slow    bool
	fetched stint.Grant // a slot that a slow participant has asked for and got
}

// Want is one call of [stint.Slots.Want].
type Want struct {
	Tier    stint.Priority
	Waiting int
}

var _ stint.Slots = (*Fake)(nil)

// Bind keeps what the participant is to be told with.
func (f *Fake) Bind(notify func(), lost func(stint.Grant, error)) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	if f.notify != nil {
		f.misuse = append(f.misuse, "Bind was called twice")
	}
	f.notify, f.lost = notify, lost
}

// TryAcquire takes a slot if one is free. A slow participant has to ask for it
// first, and notifies when it has it.
func (f *Fake) TryAcquire(stint.Priority) (stint.Grant, error) {
	p := f.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	f.tries++
	if grant := f.fetched; grant != 0 {
		f.fetched = 0
		return grant, nil
	}
	if p.broken != nil {
		return 0, p.broken
	}
	if p.runningLocked() >= p.limit {
		return 0, stint.ErrNoSlot
	}
	p.last++
	f.held[p.last] = true
	if f.slow {
		f.fetched = p.last
		go f.notify()
		return 0, stint.ErrNoSlot
	}
	return p.last, nil
}

// Release gives a grant back and tells who waits, once the caller, which holds
// its scheduler's lock, has gone on.
func (f *Fake) Release(grant stint.Grant) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	if f.losing[grant] {
		return // it cannot know yet
	}
	if !f.held[grant] {
		f.misuse = append(f.misuse, "Release of a grant that is not held")
		return
	}
	f.freeLocked(grant)
}

func (f *Fake) freeLocked(grant stint.Grant) {
	delete(f.held, grant)
	if notify := f.pool.waitingLocked(); len(notify) > 0 {
		go call(notify)
	}
}

// Want notes who waits. A slot that came too late for anybody is given back, and one
// that came free before the participant waited is told of.
func (f *Fake) Want(tier stint.Priority, waiting int) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	if f.waiting == 0 && waiting > 0 && (f.pool.runningLocked() < f.pool.limit || f.pool.broken != nil) {
		go f.notify()
	}
	f.tier, f.waiting = tier, waiting
	f.wants = append(f.wants, Want{tier, waiting})
	if waiting == 0 && f.fetched != 0 {
		f.freeLocked(f.fetched)
		f.fetched = 0
	}
}

// Usage tells who holds slots and who waits.
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

// SetSlow makes the participant one that has to ask far away: TryAcquire
// answers that no slot is free, and notifies when the slot has come.
func (f *Fake) SetSlow(slow bool) {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	f.slow = slow
}

// Lose takes away every slot that the participant holds, as a lease that has
// run out does. The others are told that slots are free.
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

// Held is how many slots the participant holds.
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

// Misuse returns how the scheduler has broken the contract: a grant released
// twice, or after it was lost.
func (f *Fake) Misuse() []string {
	f.pool.mu.Lock()
	defer f.pool.mu.Unlock()
	return slices.Clone(f.misuse)
}
