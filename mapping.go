package stint

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"sync"

	"github.com/stintgo/stint/internal/sched"
)

// mapping is one range over a Map: a goroutine of its own, the feeder, takes inputs
// and starts their calls, and the caller's goroutine yields their outcomes.
type mapping[In, Out any] struct {
	ctx       context.Context //nolint:containedctx // of the one range that a mapping is
	cancel    context.CancelFunc
	s         Scheduler
	fn        func(context.Context, In) (Out, error)
	unordered bool

	room  chan struct{} // for the feeder: an outcome has been yielded
	fresh chan struct{} // for the caller: a field below has changed; both hold one signal

	mu       sync.Mutex
	calls    []*Future[Out] // not yielded yet; if unordered only those that have ended
	inFlight int            // calls that are not yielded, and one that is being started
	stopped  bool           // no more calls are started
	closed   bool           // the scheduler is closed: no more inputs are taken
	over     bool           // inputs has returned
	broken   error          // inputs has panicked, or has ended its goroutine; else nil
}

func newMapping[In, Out any](
	ctx context.Context, s Scheduler, fn func(context.Context, In) (Out, error), unordered bool,
) *mapping[In, Out] {
	m := &mapping[In, Out]{
		s: s, fn: fn, unordered: unordered,
		room: make(chan struct{}, 1), fresh: make(chan struct{}, 1),
	}
	m.ctx, m.cancel = context.WithCancel(ctx)
	return m
}

// yieldAll is the range.
func (m *mapping[In, Out]) yieldAll(inputs iter.Seq[In], yield func(Out, error) bool) {
	defer m.stop()
	if m.ctx.Err() == nil {
		go m.feed(inputs)
	}
	for {
		f, over := m.next(false)
		switch {
		case f != nil:
			if !m.hand(f, yield) {
				return
			}
		case over:
			m.passOn()
			return
		default:
			var none Out
			yield(none, context.Cause(m.ctx))
			return
		}
	}
}

// hand yields the outcome of a call. The call is in flight until the body of the range
// returns.
func (m *mapping[In, Out]) hand(f *Future[Out], yield func(Out, error) bool) bool {
	defer m.yielded()
	return yield(f.outcome())
}

// window is how many inputs may be in flight: two for each slot keep the slots
// busy while the consumer works. Very high limits stand for no limit and get
// less.
func (m *mapping[In, Out]) window() int {
	const most = 4096
	limit := m.s.e.Limit()
	return limit + min(max(limit, 1), most, MaxSlots-limit) // an int may have 32 bits
}

// feed starts a call for each input, until the range is left or its context ends.
func (m *mapping[In, Out]) feed(inputs iter.Seq[In]) {
	returned := false
	defer func() {
		var broken error
		if !returned {
			broken = caught(recover())
		}
		defer m.fed(broken) // deferred, since the hook may end the goroutine
		m.s.e.Report(broken)
	}()
	if m.enter() {
		for in := range inputs {
			m.start(in)
			if !m.enter() {
				break
			}
		}
	}
	returned = true
}

// fed records that inputs has returned, or has broken.
func (m *mapping[In, Out]) fed(broken error) {
	m.mu.Lock()
	m.over, m.broken = broken == nil && !m.stopped, broken
	m.mu.Unlock()
	if broken != nil {
		m.cancel()
	}
	signal(m.fresh)
}

// enter waits until one more input may be taken, and reports false if no more may be
// taken.
func (m *mapping[In, Out]) enter() bool {
	var resized <-chan struct{}
	for {
		m.mu.Lock()
		m.stopped = m.stopped || m.ctx.Err() != nil
		stopped, full := m.stopped || m.closed, m.inFlight >= m.window()
		m.mu.Unlock()
		if stopped || !full {
			return !stopped
		}
		if resized == nil {
			resized = m.s.e.Limits().Resized()
			continue // the limit may have been raised before
		}
		select {
		case <-m.room:
		case <-resized:
			resized = nil
		case <-m.ctx.Done():
		}
	}
}

// start starts the call for an input, unless the range has been left.
func (m *mapping[In, Out]) start(in In) {
	m.mu.Lock()
	if m.stopped {
		m.mu.Unlock()
		return
	}
	m.inFlight++
	m.mu.Unlock()
	signal(m.fresh) // the slot of the function that ranges may be what the call needs

	f := &Future[Out]{call[Out]{fn: func(ctx context.Context) (Out, error) { return m.fn(ctx, in) }}}
	f.call.Init(m.ctx, m.s.e)
	if refused := f.call.GoBeside(&f.call, m.s.ask(m.s.tierFor(m.ctx))); errors.Is(refused, ErrClosed) {
		m.mu.Lock()
		m.closed = true // the outcome of this one says so
		m.mu.Unlock()
	}
	if m.unordered {
		f.call.After(func() *sched.Outcome {
			m.enqueue(f)
			return nil
		})
	} else {
		m.enqueue(f)
	}
}

// enqueue queues the outcome of a call to be yielded.
func (m *mapping[In, Out]) enqueue(f *Future[Out]) {
	m.mu.Lock()
	m.calls = append(m.calls, f)
	m.mu.Unlock()
	signal(m.fresh)
}

// next waits for the call whose outcome is yielded next. f is nil if the outcomes of all
// inputs have been yielded, and then over is true, or if the context has ended before that.
// If inputs has panicked or ended its goroutine, over is true at once, unless the range is
// being left.
func (m *mapping[In, Out]) next(leaving bool) (f *Future[Out], over bool) {
	for {
		m.mu.Lock()
		if m.broken != nil && !leaving {
			m.mu.Unlock()
			return nil, true
		}
		m.stopped = m.stopped || m.ctx.Err() != nil
		var ended <-chan struct{}
		if len(m.calls) > 0 {
			if f = m.calls[0]; f.call.Settled() {
				m.calls[0] = nil
				m.calls = m.calls[1:]
				m.mu.Unlock()
				return f, false
			}
			ended = f.Done()
		}
		idle, stopped := m.inFlight == 0, m.stopped
		over = m.over
		m.mu.Unlock()
		if idle && (over || stopped) {
			return nil, over
		}
		m.wait(ended, idle, stopped)
	}
}

// wait waits until ended is closed, or a field guarded by mu has changed. It suspends the
// slot of the function that ranges if calls are in flight. Otherwise it waits for inputs,
// which is a part of that function and so runs on its slot.
func (m *mapping[In, Out]) wait(ended <-chan struct{}, idle, stopped bool) {
	done := m.ctx.Done()
	if stopped {
		done = nil // what is in flight is waited for
	}
	if !idle {
		suspended := sched.Suspend(m.ctx)
		defer suspended.Resume()
	}
	select {
	case <-ended:
	case <-m.fresh:
	case <-done:
	}
}

// yielded makes room for one more input.
func (m *mapping[In, Out]) yielded() {
	m.mu.Lock()
	m.inFlight--
	m.mu.Unlock()
	signal(m.room)
}

// stop ends the range: it cancels the calls in flight and waits for them. The feeder ends
// when inputs yields another input.
func (m *mapping[In, Out]) stop() {
	m.cancel()
	m.mu.Lock()
	m.stopped = true
	m.mu.Unlock()
	for {
		f, _ := m.next(true)
		if f == nil {
			return
		}
		m.yielded() // discarded: the range has ended
	}
}

// passOn panics, or ends the caller's goroutine, as inputs has done in the feeder. If inputs
// has returned, it does nothing.
func (m *mapping[In, Out]) passOn() {
	m.mu.Lock()
	broken := m.broken
	m.mu.Unlock()
	if broken == ErrGoexit { //nolint:errorlint // as [caught] returns it
		runtime.Goexit()
	}
	if broken != nil {
		panic(broken)
	}
}

// signal wakes the goroutine that waits on ch, which has room for one signal.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
