package sched

import (
	"context"
	"runtime"

	"github.com/stintgo/stint/internal/backlog"
)

// Config configures an engine.
type Config struct {
	Limit  int
	Caps   [Tiers]int // 0 for unset
	PerKey int        // entries of one key that run at once, 0 for no limit
	Share  func(key string) int
	Queue  int  // entries that may wait, 0 for no bound
	Refuse bool // an arrival that finds the queue full is refused; else its submitter is blocked
	Slots  Slots
	// Holders makes the engine keep which work has slots, and since when.
	Holders bool
	Caught  func(recovered any) error // converts the panic or exit of a function to an error
	Report  func(error)               // receives the errors of Caught, which perhaps no call waits for
}

// Engine is the state behind a scheduler: slots, and the work that waits for them. All
// methods are safe for concurrent use.
type Engine struct {
	core

	cancellations cancellations
	live          liveTasks
	entries       entryPool

	// Immutable.
	parallel bool  // more than one processor
	items    bool  // jobs without a key are items without an entry, in a queue without a bound
	plain    entry // shared by all running work of one slot without a key, which needs no entry of its own
	gone     entry // replaces the entry of a group's job that has ended
}

// New returns an engine.
func New(cfg Config) *Engine {
	e := &Engine{parallel: runtime.GOMAXPROCS(0) > 1}
	e.cfg, e.tracks = cfg, cfg.Slots != nil || cfg.Holders
	e.mu.spins = spinAlone
	e.engine, e.limits.e, e.suspended.e, e.holders.e = e, e, e, e
	e.cancellations.e, e.entries.e = e, e
	e.live = liveTasks{e: e, all: make(map[*Task]struct{})}
	e.items = !e.tracks && cfg.Queue == 0
	e.queue.clock.born = now().Add(-1) // stamps are tickets of the policy, which begin at 1
	e.queue.alone = -1
	e.suspended.resumes.keys = make(map[string]*keyResumes)
	e.queue.policy = backlog.New[*entry](backlog.Config{
		Max: cfg.Limit, Caps: cfg.Caps, PerKey: cfg.PerKey, Share: cfg.Share, Turned: e.suspended.resumes.turn,
	})
	e.plain = entry{e: e, use: use{Ask: Ask{Weight: 1}}}
	e.gone = entry{e: e}
	if cfg.Queue > 0 {
		e.blocked = backpressure{e: e, log: backlog.New[*entry](backlog.Config{Max: cfg.Queue, Share: cfg.Share})}
	}
	e.gate.publish(e.queue.policy.Bounds())
	if e.tracks {
		e.gate.word.Or(slowBit)
	}
	if cfg.Slots != nil {
		e.mu.spins = spinShared
		e.shared.bindTo(e)
	}
	return e
}

// TryFast takes one slot for a tier if that needs no lock. Its permit is [Engine.One].
func (e *Engine) TryFast(tier int) bool { return e.gate.take(tier) }

// One returns the permit for one slot that was taken without a key.
func (e *Engine) One() Permit { return Permit{e: e} }

// Limit returns the number of slots.
func (e *Engine) Limit() int { return int(e.gate.limit.Load()) }

// Limits returns the limits of the engine.
func (e *Engine) Limits() *Limits { return &e.limits }

// Queue returns how many entries may wait, 0 for no bound.
func (e *Engine) Queue() int { return e.cfg.Queue }

// Slots returns the source of the slots if they are shared, else nil.
func (e *Engine) Slots() Slots { return e.cfg.Slots }

// Report reports an error of Config.Caught.
func (e *Engine) Report(err error) { e.cfg.Report(err) }

// Clear refuses all that waits and returns the number of refused entries.
func (e *Engine) Clear() int {
	e.lock()
	n := e.refuseAll(func(int) error { return ErrCleared })
	e.dispatchAndUnlock(0, false)
	return n
}

// Drain refuses new work and waits until all that was accepted has ended. If ctx ends
// first, it closes the engine.
func (e *Engine) Drain(ctx context.Context) error {
	e.lock()
	e.closed = true
	e.blocked.refuse(closed)
	if e.idle.wait(ctx, e) {
		return nil
	}
	e.Close()
	return context.Cause(ctx)
}

// Close refuses waiting and new work, and cancels what runs.
func (e *Engine) Close() {
	e.lock()
	e.closed = true
	e.killed.Store(true)
	e.refuseAll(closed)
	e.blocked.refuse(closed)
	running := e.live.removeAll()
	e.dispatchAndUnlock(0, false)
	for t := range running {
		t.cancel(ErrClosed)
	}
}

func closed(int) error { return ErrClosed }
