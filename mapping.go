package stint

import (
	"context"
	"sync"
)

// mapping is one range over a Map.
type mapping[In, Out any] struct {
	ctx    context.Context //nolint:containedctx // of the one range that a mapping is
	cancel context.CancelFunc
	s      Scheduler
	fn     func(context.Context, In) (Out, error)
}

func newMapping[In, Out any](
	ctx context.Context, s Scheduler, fn func(context.Context, In) (Out, error),
) *mapping[In, Out] {
	m := &mapping[In, Out]{s: s, fn: fn}
	m.ctx, m.cancel = context.WithCancel(ctx)
	return m
}

// window is how many inputs may be in flight: two for each slot keep the slots
// busy while the consumer works. Very high limits stand for no limit and get
// less.
func (m *mapping[In, Out]) window() int {
	const most = 4096
	limit := int(m.s.c.limit.Load())
	return limit + min(max(limit, 1), most)
}

// fly starts the call for one input.
func (m *mapping[In, Out]) fly(in In) *Future[Out] {
	return Go(m.ctx, m.s, func(ctx context.Context) (Out, error) { return m.fn(ctx, in) })
}

// outcome waits for a call, lending the slot of the function that ranges.
func (m *mapping[In, Out]) outcome(f *Future[Out]) (Out, error) {
	if !f.settled() {
		m.lending(func() { <-f.Done() })
	}
	return f.outcome()
}

func (m *mapping[In, Out]) lending(wait func()) {
	lender := m.s.c.lend(m.ctx)
	defer m.s.c.reclaim(lender)
	wait()
}

// landings is the calls that have ended, in the order in which they did.
type landings[T any] struct {
	mu     sync.Mutex
	ended  []*Future[T]
	landed chan struct{} // non-nil while somebody waits
}

func (l *landings[T]) put(f *Future[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, f)
	if l.landed != nil {
		close(l.landed)
		l.landed = nil
	}
}

// take returns the next call that has ended, or nil if there is none and it is
// not to wait.
func (l *landings[T]) take(wait bool, m interface{ lending(func()) }) *Future[T] {
	for {
		l.mu.Lock()
		if len(l.ended) > 0 {
			f := l.ended[0]
			l.ended = l.ended[1:]
			l.mu.Unlock()
			return f
		}
		if !wait {
			l.mu.Unlock()
			return nil
		}
		landed := make(chan struct{})
		l.landed = landed
		l.mu.Unlock()
		m.lending(func() { <-landed })
	}
}
