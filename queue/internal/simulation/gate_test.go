package simulation_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// fate is what becomes of something that waits at the gate.
type fate uint8

const (
	through   fate = iota
	before         // the store cannot be reached
	lost           // the call is made, and its answer does not arrive
	withdrawn      // its context has ended
	over           // so has the simulation
)

// request is a goroutine that waits at the gate.
type request struct {
	who   *node
	key   string          // tells it from all others that may wait at the same time
	ctx   context.Context //nolint:containedctx // of the one who waits
	go_   chan fate
	seen  bool      // by the world, which has drawn lots for it
	until time.Time // it stays so long
	fate  fate
}

// from is when it may pass, if it ever may. A call whose context has ended waits
// no longer.
func (r *request) from() (from time.Time, ok bool) {
	if r.ctx.Err() == nil {
		from = r.until
	}
	if r.who.stalled.After(from) {
		from = r.who.stalled
	}
	return from, !r.who.killed
}

// gate is where goroutines wait for their turn.
type gate struct {
	arrived chan struct{} // somebody has, since the world last looked

	mu      sync.Mutex
	waiting []*request
	closed  bool
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 1)} }

// pass waits until the world lets the caller through.
func (g *gate) pass(ctx context.Context, who *node, key string) fate {
	return g.enter(&request{who: who, key: who.name + " " + key, ctx: ctx})
}

func (g *gate) enter(r *request) fate {
	r.go_ = make(chan fate, 1)
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return over
	}
	g.waiting = append(g.waiting, r)
	g.mu.Unlock()
	wake := func() { signal(g.arrived) }
	wake()
	defer context.AfterFunc(r.ctx, wake)()
	return <-r.go_
}

// turn is pass for what takes no time.
func (g *gate) turn(ctx context.Context, who *node, key string) fate {
	return g.enter(&request{who: who, key: who.name + " " + key, ctx: ctx, seen: true})
}

// all returns who waits, in an order that does not depend on who came first.
func (g *gate) all() ([]*request, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	slices.SortFunc(g.waiting, func(a, b *request) int { return cmp.Compare(a.key, b.key) })
	for i := 1; i < len(g.waiting); i++ {
		if g.waiting[i].key == g.waiting[i-1].key {
			return nil, fmt.Errorf("two wait at the gate as %q", g.waiting[i].key)
		}
	}
	return slices.Clone(g.waiting), nil
}

// open lets a request through.
func (g *gate) open(r *request, f fate) {
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *request) bool { return other == r })
	g.mu.Unlock()
	r.go_ <- f
}

// close lets everybody through, for good.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, r := range g.waiting {
		r.go_ <- over
	}
	g.waiting = nil
}
