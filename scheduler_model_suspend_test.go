package stint_test

import (
	"context"
	"slices"

	"github.com/stintgo/stint"
)

// suspend has a function wait for a promise.
func (p *play) suspend() {
	a := p.pick(func(a *actor) bool { return a.runsAFunction() && a.ended == nil })
	if a == nil {
		return
	}
	promise := stint.NewPromise[int]()
	a.waits = promise
	a.orders <- func(ctx context.Context) { _, _ = promise.Future().Wait(ctx) }
	p.m.suspend(a.piece)
}

// resolve settles a promise that a function waits for.
func (p *play) resolve() {
	a := p.pick(func(a *actor) bool { return a.waits != nil })
	if a == nil {
		return
	}
	settled := true
	switch p.rnd.IntN(3) {
	case 0:
		settled = a.waits.Resolve(1)
	case 1:
		settled = a.waits.Fail(errFailed)
	default:
		a.waits.Future().Cancel(errAsked)
	}
	if !settled || a.waits.Resolve(2) {
		p.t.Fatalf("a promise is settled once\n%s", p)
	}
	a.waits = nil
	p.m.comeBack(a.piece)
}

// await has a function submit another one and wait for its outcome.
func (p *play) await() {
	if p.m.submitters != nil { // it may wait for room before that
		return
	}
	parent := p.pick(func(a *actor) bool { return a.runsAFunction() && a.ended == nil })
	if parent == nil {
		return
	}
	a := p.newActor("await")
	a.parent, a.await, a.weight, a.view = parent.piece, true, 1, a.view.Weight(1) // see isAwaited
	parent.orders <- a.begin
	if p.m.arrive(a.piece); a.piece.state != over {
		p.m.suspend(parent.piece)
	}
}

// idleWait is a call of WaitIdle, or of Drain.
type idleWait struct {
	name string
	done bool
	err  error
}

func (p *play) wait(name string, call func(context.Context) error) {
	w := &idleWait{name: name}
	p.idle = append(p.idle, w)
	go func() {
		w.err = call(p.t.Context())
		w.done = true
	}()
}

func (p *play) waitIdle() { p.wait("WaitIdle", p.s.WaitIdle) }

// compareIdle checks that the calls that wait until nothing is queued or runs have returned if that
// is so now, and only then.
func (p *play) compareIdle(after string) {
	p.t.Helper()
	left := slices.ContainsFunc(p.actors, func(a *actor) bool { return a.piece.state != over })
	for _, w := range p.idle {
		if w.done == left || w.err != nil {
			p.t.Fatalf("after %s: %s has returned: %t with error %v, something is left: %t\n%s",
				after, w.name, w.done, w.err, left, p)
		}
	}
	if !left {
		p.idle = nil
	}
}

// end begins the end of a play, in one of three ways.
func (p *play) end() {
	switch p.rnd.IntN(3) {
	case 0:
		p.drain()
	case 1:
		p.close()
	}
}

func (p *play) drain() {
	p.m.closed = true
	p.wait("Drain", p.s.Drain)
	p.m.refuseSubmitters(func(*piece) error { return stint.ErrClosed })
	p.m.dispatch(false)
	p.compare("drain")
}

func (p *play) close() {
	for p.pick(func(a *actor) bool { return a.waits != nil }) != nil { // they would come back in no order
		p.resolve()
		p.compare("resolve")
	}
	if p.nestedQueued() > 1 || nil != p.pick(func(a *actor) bool { return a.await && a.piece.state != over }) {
		return
	}
	p.m.closed, p.m.killed = true, true
	p.s.Close()
	for _, a := range p.actors {
		if a.ended == nil && a.follows == nil {
			a.ended = stint.ErrClosed
		}
	}
	closed := func(*piece) error { return stint.ErrClosed }
	p.m.refuseSubmitters(closed)
	p.m.withdraw(closed)
	p.compare("close")
}

// why compares why an arrival would not start at once.
func (p *play) why() {
	q := &piece{
		fifo: fifo{tier: p.rnd.IntN(stint.Tiers), key: p.keys[p.rnd.IntN(len(p.keys))]}, weight: 1 + p.rnd.IntN(p.heavy),
	}
	var want []stint.Code
	switch {
	case p.m.closed:
		want = []stint.Code{stint.CodeClosed}
	case p.m.admits(q):
	default:
		if p.m.bound > 0 && len(p.m.waiting) >= p.m.bound {
			want = append(want, stint.CodeQueueFull)
		}
		want = append(want, p.m.codes(q)...)
	}
	got := p.s.At(stint.Priority(q.tier) + stint.Lowest).Key(q.key).Weight(q.weight).Why()
	var codes []stint.Code
	for _, r := range got {
		if r.Code != stint.CodeBehind {
			codes = append(codes, r.Code)
		}
	}
	if !slices.Equal(codes, want) || (len(got) == 0) != (p.m.admits(q) && !p.m.closed) {
		p.t.Fatalf("why %+v: %v, want %v\n%s", q, got, want, p)
	}
}
