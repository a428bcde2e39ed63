package stint

import (
	"context"
	"iter"
)

// Map calls fn for each input on a slot of s and yields the outcomes in the
// order of the inputs. Inputs are taken in the caller's goroutine as there is
// room: at most two for each slot are in flight, so they may be without end.
// An outcome that is ready is yielded before another input is asked for.
//
// The range is where everything happens. Leaving it early cancels the context
// of the calls in flight and waits for them. When ctx ends, one more input is
// taken at most, and calls that have not begun yield its cause: so a range that
// ctx cuts short says so. A panic in fn is yielded as a [*PanicError]; one in
// inputs goes on in the range. A function that ranges lends its slot while it
// waits; see [Scheduler].
func Map[In, Out any](
	ctx context.Context, s Scheduler, inputs iter.Seq[In], fn func(context.Context, In) (Out, error),
) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		m := newMapping(ctx, s, fn)
		var flying []*Future[Out] // in the order of the inputs
		defer func() {
			m.cancel()
			for _, f := range flying {
				_, _ = m.outcome(f) // nobody wants it any more
			}
		}()
		pass := func(wait bool) bool {
			for len(flying) > 0 && (wait || len(flying) >= m.window() || flying[0].settled()) {
				f := flying[0]
				flying = flying[1:]
				if !yield(m.outcome(f)) {
					return false
				}
			}
			return true
		}
		for in := range inputs {
			ended := m.ctx.Err() != nil // if so, this one's outcome is the cause
			flying = append(flying, m.fly(in))
			if !pass(false) {
				return
			}
			if ended {
				break
			}
		}
		pass(true)
	}
}

// MapUnordered is [Map], but yields each outcome as soon as there is one.
func MapUnordered[In, Out any](
	ctx context.Context, s Scheduler, inputs iter.Seq[In], fn func(context.Context, In) (Out, error),
) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		m := newMapping(ctx, s, fn)
		var landed landings[Out]
		flying := 0
		defer func() {
			m.cancel()
			for ; flying > 0; flying-- {
				landed.take(true, m)
			}
		}()
		pass := func(wait bool) bool {
			for flying > 0 {
				f := landed.take(wait || flying >= m.window(), m)
				if f == nil {
					return true
				}
				flying--
				if !yield(m.outcome(f)) {
					return false
				}
			}
			return true
		}
		for in := range inputs {
			ended := m.ctx.Err() != nil // if so, this one's outcome is the cause
			f := m.fly(in)
			flying++
			f.follow(func() { landed.put(f) })
			if !pass(false) {
				return
			}
			if ended {
				break
			}
		}
		pass(true)
	}
}
