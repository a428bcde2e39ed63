package stint_test

import (
	"context"
	"errors"

	"github.com/stintgo/stint"
)

var errFailed = errors.New("the function has failed")

// watch has an actor note the outcome of its future.
func (a *actor) watch(f *stint.Future[int]) {
	if a.future = f; a.id%2 == 0 {
		a.cancel = f.Cancel
	}
	go func() {
		_, err := f.Wait(context.Background())
		a.isOver(err)
	}()
}

// tryGo starts a function, of a group or alone, if it can start at once.
func (p *play) tryGo() {
	a := p.newActor("trygo")
	var ctx context.Context
	ctx, a.cancel = context.WithCancelCause(p.t.Context())
	want := p.m.refusal(a.piece) == nil && p.m.admits(a.piece)
	var ok bool
	if a.id%3 == 0 {
		a.how = "group"
		g := stint.NewGroup(ctx, a.view)
		if a.id%2 == 0 {
			a.cancel = g.Cancel
		}
		ok = g.TryGo(func(ctx context.Context) error {
			_, err := a.body(ctx)
			return err
		})
		if !ok && g.Wait() != nil {
			p.t.Fatalf("Wait of a group of nothing failed\n%s", p)
		}
		go func() {
			if err := g.Wait(); ok {
				a.isOver(err)
			}
		}()
	} else {
		var f *stint.Future[int]
		if f, ok = stint.TryGo(ctx, a.view, a.body); ok {
			a.watch(f)
		}
	}
	if ok != want {
		p.t.Fatalf("TryGo() = %t, want %t\n%s", ok, want, p)
	}
	if ok {
		p.m.enter(a.piece)
	} else {
		a.cancel(nil)
		a.state, a.piece.state = over, over
	}
	p.m.look(a.piece)
}

// follow continues a function that runs, with its value or its failure.
func (p *play) follow() {
	// One slot, and one continuation: see isAwaited.
	parent := p.pick(func(a *actor) bool {
		return a.piece.state == inside && a.future != nil && a.weight == 1 && a.follower == nil
	})
	if parent == nil {
		return
	}
	how := "then"
	if p.rnd.IntN(2) == 0 {
		how = "catch"
	}
	a := p.newActor(how)
	a.follows, a.catches = parent.piece, how == "catch"
	parent.follower = a.piece
	var ctx context.Context
	ctx, a.cancel = context.WithCancelCause(p.t.Context())
	if a.catches {
		a.watch(stint.Catch(ctx, a.view, parent.future, func(ctx context.Context, err error) (int, error) {
			if !errors.Is(err, errFailed) {
				p.t.Errorf("Catch got %v", err)
			}
			return a.body(ctx)
		}))
	} else {
		a.watch(stint.Then(ctx, a.view, parent.future, func(ctx context.Context, _ int) (int, error) { return a.body(ctx) }))
	}
}

// endContext ends the context of a function that runs, or cancels a continuation of one, which
// ends that context too.
func (p *play) endContext() {
	a := p.pick(func(a *actor) bool {
		if a.follows != nil {
			return a.ended == nil && a.follows.state == inside
		}
		return a.ended == nil && a.runsAFunction() && a.how != "await"
	})
	if a == nil {
		return
	}
	a.cancel(errAsked)
	if a.ended = errAsked; a.follows != nil && p.m.killed && a.id%2 == 0 {
		a.ended = stint.ErrClosed // the future was cancelled when the scheduler could not run it any more
	}
	if a.follows != nil && a.follows.ended == nil {
		a.follows.ended = errAsked
	}
}

// compareContexts checks that the contexts of functions have ended if they should have.
func (p *play) compareContexts(after string) {
	p.t.Helper()
	for _, a := range p.actors {
		if !a.runsAFunction() {
			continue
		}
		if err := context.Cause(a.ctx); !errors.Is(err, a.ended) || (a.ctx.Err() != nil) != (a.ended != nil) {
			p.t.Fatalf("after %s: the context of %s %d has ended with %v, want %v\n%s", after, a.how, a.id, err, a.ended, p)
		}
	}
}
