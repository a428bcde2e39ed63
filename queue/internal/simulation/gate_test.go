package simulation_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// fate is the result of a request at the gate.
type fate uint8

const (
	through   fate = iota
	before         // the store cannot be reached
	lost           // the call is made, and its answer is lost
	withdrawn      // the context of the request has ended
	over           // the simulation has ended
)

// request is a goroutine that waits at the gate.
type request struct {
	author *node
	key    string          // unlike the keys of all requests that may wait at the same time
	ctx    context.Context //nolint:containedctx // of the caller
	go_    chan fate
	seen   bool      // drawn by the world
	until  time.Time // the request waits at least that long
	fate   fate
}

// from returns when the request may pass, and whether it ever may. A call whose context
// has ended may pass at once.
func (r *request) from() (from time.Time, ok bool) {
	if r.ctx.Err() == nil {
		from = r.until
	}
	if r.author.stalled.After(from) {
		from = r.author.stalled
	}
	return from, !r.author.killed
}

// gate is where goroutines wait for their step.
type gate struct {
	arrived chan struct{} // signals a new request to the world

	mu      sync.Mutex
	waiting []*request
	closed  bool
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 1)} }

// pass waits until the world lets the caller pass.
func (g *gate) pass(ctx context.Context, by *node, key string) fate {
	return g.enter(&request{author: by, key: by.name + " " + key, ctx: ctx})
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

// turn is pass for a request that takes no time.
func (g *gate) turn(ctx context.Context, by *node, key string) fate {
	return g.enter(&request{author: by, key: by.name + " " + key, ctx: ctx, seen: true})
}

// all returns the waiting requests in an order that does not depend on their arrival.
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

// open lets a request pass.
func (g *gate) open(r *request, f fate) {
	g.mu.Lock()
	g.waiting = slices.DeleteFunc(g.waiting, func(other *request) bool { return other == r })
	g.mu.Unlock()
	r.go_ <- f
}

// close lets all present and later requests pass.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, r := range g.waiting {
		r.go_ <- over
	}
	g.waiting = nil
}
