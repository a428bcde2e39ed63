package stint_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
)

// stage is where the model has a future.
type stage int

const (
	atPending stage = iota // continues another one that has no outcome
	atQueued
	atRunning
	atOver
)

// order says how a running function ends.
type order struct {
	panics, exits bool
	err           error
}

// node is a future and what the model thinks of it.
type node struct {
	id     int
	future *stint.Future[int]
	orders chan order
	obeys  bool            // its function ends with its context
	ctx    context.Context //nolint:containedctx // that one, once it has been called

	parent   *node
	children []*node
	scope    int // which of the model's contexts it has
	at       stage
	cause    error // with which its context has ended
	value    int
	err      error
	torn     []int // calls of each teardown
}

// call is the function of every node.
func (n *node) call(ctx context.Context, value int) (int, error) {
	n.ctx = ctx
	var done <-chan struct{}
	if n.obeys {
		done = ctx.Done()
	}
	select {
	case o := <-n.orders:
		if o.panics {
			panic(o.err)
		}
		if o.exits {
			runtime.Goexit()
		}
		return value, o.err
	case <-done:
		return 0, context.Cause(ctx)
	}
}

// futureModel is a scheduler as one would write it with no thought of speed.
type futureModel struct {
	t       *testing.T
	rng     *rand.Rand
	s       stint.Scheduler
	limit   int
	nodes   []*node // the latest ones
	queued  []*node // in FIFO order
	running int
	ctxs    [3]context.Context
	cancels [3]context.CancelCauseFunc
	made    int
	errs    int
}

func (m *futureModel) error(what string) error {
	m.errs++
	return fmt.Errorf("%s %d", what, m.errs)
}

func (m *futureModel) pick(at ...stage) *node {
	var fit []*node
	for _, n := range m.nodes {
		if len(at) == 0 || slices.Contains(at, n.at) {
			fit = append(fit, n)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[m.rng.IntN(len(fit))]
}

func (m *futureModel) add(parent *node) {
	n := &node{
		id: m.made, orders: make(chan order), obeys: m.rng.IntN(2) == 0, parent: parent,
		scope: m.rng.IntN(len(m.ctxs)), value: m.made,
	}
	m.made++
	m.nodes = append(m.nodes, n)
	if parent == nil {
		n.future = stint.Go(m.ctxs[n.scope], m.s, func(ctx context.Context) (int, error) { return n.call(ctx, n.id) })
		m.enqueue(n)
	} else {
		// With its parent's context, or the end of one could come before or after
		// the start of the other.
		n.scope = parent.scope
		n.future = stint.Then(m.ctxs[n.scope], m.s, parent.future, func(ctx context.Context, v int) (int, error) {
			return n.call(ctx, v+1)
		})
		if parent.children = append(parent.children, n); parent.at == atOver {
			m.follow(n)
		}
	}
	if len(m.nodes) > 60 && m.nodes[0].at == atOver {
		m.nodes = m.nodes[1:]
	}
}

func (m *futureModel) enqueue(n *node) {
	n.at = atQueued
	m.queued = append(m.queued, n)
	m.advance()
}

// follow begins a continuation whose parent is over.
func (m *futureModel) follow(n *node) {
	switch n.value = n.parent.value + 1; {
	case n.parent.err != nil:
		m.settle(n, n.parent.err)
	case n.cause != nil:
		m.settle(n, n.cause)
	default:
		m.enqueue(n)
	}
}

func (m *futureModel) advance() {
	for m.running < m.limit && len(m.queued) > 0 {
		m.queued[0].at = atRunning
		m.running++
		m.queued = m.queued[1:]
	}
}

func (m *futureModel) settle(n *node, err error) {
	switch n.at {
	case atRunning:
		m.running--
	case atQueued:
		i := slices.Index(m.queued, n)
		m.queued = slices.Delete(m.queued, i, i+1)
	default: // it was pending
	}
	n.at, n.err = atOver, err
	m.advance()
	for _, child := range n.children {
		if child.at == atPending {
			m.follow(child)
		}
	}
}

// cancel is Future.Cancel, or the end of the context that the node was made
// with.
func (m *futureModel) cancel(n *node, cause error) {
	if n.at == atOver {
		return
	}
	if n.cause == nil {
		n.cause = cause
	}
	switch {
	case n.at == atQueued, n.at == atRunning && n.obeys:
		m.settle(n, n.cause)
	case n.at == atPending:
		m.cancel(n.parent, cause)
	}
}

func (m *futureModel) newContext(i int) {
	m.ctxs[i], m.cancels[i] = context.WithCancelCause(m.t.Context()) //nolint:fatcontext // none contains another
}

// endContext cancels a context, and whatever was made with it.
func (m *futureModel) endContext(i int) {
	cause := m.error("end of context")
	m.cancels[i](cause)
	// All end at once: a slot that one frees goes to none of the others.
	for _, at := range []stage{atQueued, atRunning, atPending} {
		for _, n := range m.nodes {
			if n.scope == i && n.at == at {
				m.cancel(n, cause)
			}
		}
	}
	m.newContext(i)
}

func (m *futureModel) step() string {
	switch op := m.rng.IntN(20); {
	case op < 5:
		m.add(nil)
		return "Go"
	case op < 9:
		if parent := m.pick(); parent != nil {
			m.add(parent)
		}
		return "Then"
	case op < 14:
		n := m.pick(atRunning)
		if n == nil {
			return "nothing"
		}
		o := order{}
		switch m.rng.IntN(8) {
		case 0:
			o = order{err: m.error("failure")}
		case 1:
			o = order{err: m.error("panic"), panics: true}
		case 2:
			o = order{err: stint.ErrGoexit, exits: true}
		}
		n.orders <- o
		m.settle(n, o.err)
		return fmt.Sprint("end of ", n.id)
	case op < 16:
		n := m.pick()
		if n == nil {
			return "nothing"
		}
		cause := m.error("cancellation")
		n.future.Cancel(cause)
		m.cancel(n, cause)
		return fmt.Sprint("Cancel of ", n.id)
	case op < 18:
		if n := m.pick(); n != nil {
			i := len(n.torn)
			n.torn = append(n.torn, 0)
			n.future.Teardown(func() { n.torn[i]++ })
		}
		return "Teardown"
	case op < 19:
		i := m.rng.IntN(len(m.ctxs))
		m.endContext(i)
		return fmt.Sprint("end of context ", i)
	default:
		m.limit = 1 + m.rng.IntN(4)
		m.s.Resize(m.limit)
		m.advance()
		return fmt.Sprint("Resize to ", m.limit)
	}
}

func (m *futureModel) check() error {
	synctest.Wait()
	if st := m.s.Stats(); st.Running != m.running || st.Queued != len(m.queued) {
		return fmt.Errorf("%d running, %d queued; want %d, %d", st.Running, st.Queued, m.running, len(m.queued))
	}
	for _, n := range m.nodes {
		if err := n.check(); err != nil {
			return fmt.Errorf("future %d: %w", n.id, err)
		}
	}
	return nil
}

func (n *node) check() error {
	if settled(n.future) != (n.at == atOver) {
		return fmt.Errorf("settled %v in stage %d", settled(n.future), n.at)
	}
	for i, calls := range n.torn {
		if (calls == 1) != (n.at == atOver) || calls > 1 {
			return fmt.Errorf("teardown %d was called %d times in stage %d", i, calls, n.at)
		}
	}
	if called := n.ctx != nil; called && n.at < atRunning || !called && n.at == atRunning {
		return fmt.Errorf("called %v in stage %d", called, n.at)
	}
	if n.at == atRunning && !errors.Is(context.Cause(n.ctx), n.cause) {
		return fmt.Errorf("its context's cause is %w, want %w", context.Cause(n.ctx), n.cause)
	}
	if n.at != atOver {
		return nil
	}
	value, err := n.future.Wait(context.Background())
	if !errors.Is(err, n.err) || err != nil && n.err == nil || err == nil && value != n.value {
		return fmt.Errorf("outcome %d, %w; want %d, %w", value, err, n.value, n.err)
	}
	return nil
}

// finish ends whatever is left.
func (m *futureModel) finish() {
	for i := range m.ctxs {
		m.endContext(i)
		m.cancels[i](nil)
		synctest.Wait()
	}
	for m.running > 0 {
		n := m.pick(atRunning)
		n.orders <- order{}
		m.settle(n, nil)
		synctest.Wait()
	}
}

// A random graph of futures and continuations, cancelled here and there, does
// after every step what the model says: which functions run, in which order, with which
// outcome, and how often each teardown is called.
func TestD6_FutureModel(t *testing.T) {
	const rounds, steps = 40, 500
	seed := seeded.Seed(t)
	for round := range uint64(rounds) {
		synctest.Test(t, func(t *testing.T) {
			m := &futureModel{t: t, rng: rand.New(rand.NewPCG(seed, round)), limit: 2}
			m.s = stint.New(m.limit, stint.Config{})
			for i := range m.ctxs {
				m.newContext(i)
			}
			for i := range steps {
				did := m.step()
				if err := m.check(); err != nil {
					t.Errorf("round %d, step %d, after %s: %v", round, i, did, err)
					break
				}
			}
			if t.Failed() {
				t.FailNow() // what is left would hang
			}
			m.finish()
			if err := m.check(); err != nil {
				t.Errorf("round %d, at the end: %v", round, err)
			}
			atRest(t, m.s)
		})
		if t.Failed() {
			return
		}
	}
}
