package server

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/stintgo/stint/queue"
)

// hub hands the signals of a store to the clients who listen, of whom there may be
// many. It listens once to each of their queues: so the store, which signals with
// most changes of a task, has as little to do for many clients as for one.
type hub struct {
	store queue.Store

	mu     sync.Mutex // before the store's
	closed bool
	relays map[string]*relay // of the queues that somebody listens to
	ended  sync.WaitGroup
}

// relay takes the signals of one queue.
type relay struct {
	to    map[*signals]struct{} // guarded by the hub's lock
	ready <-chan struct{}
	over  chan struct{}
	stop  func()
}

func newHub(store queue.Store) *hub { return &hub{store: store, relays: make(map[string]*relay)} }

// listen tells a client of the signals of queues from now on, beginning with one
// for each: it may have been away, and a signal was meant for it.
func (h *hub) listen(to *signals, queues ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range queues {
		name = cmp.Or(name, defaultQueue) // as a client expects to be told of it
		if r := h.relay(name); r != nil {
			r.to[to] = struct{}{}
		}
		to.signal(name)
	}
}

// relay returns that of a queue, made if there is none; nil if the hub is closed.
// The lock is held.
func (h *hub) relay(name string) *relay {
	r := h.relays[name]
	if r == nil && !h.closed {
		r = &relay{to: make(map[*signals]struct{}), over: make(chan struct{})}
		r.ready, r.stop = h.store.Listen(name)
		h.relays[name] = r
		h.ended.Go(func() { h.run(name, r) })
	}
	return r
}

// leave is the opposite of listen.
func (h *hub) leave(to *signals, queues ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range queues {
		name = cmp.Or(name, defaultQueue)
		r := h.relays[name]
		if r == nil {
			continue
		}
		if delete(r.to, to); len(r.to) == 0 {
			h.end(name, r)
		}
	}
}

// end ends a relay. The lock is held.
func (h *hub) end(name string, r *relay) {
	r.stop()
	close(r.over)
	delete(h.relays, name)
}

// run hands signals on until the relay is over.
func (h *hub) run(name string, r *relay) {
	for {
		select {
		case <-r.ready:
		case <-r.over:
			return
		}
		h.mu.Lock()
		for to := range r.to {
			to.signal(name)
		}
		h.mu.Unlock()
	}
}

// close stops everything, and waits for it.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for name, r := range h.relays {
		h.end(name, r)
	}
	h.mu.Unlock()
	h.ended.Wait()
}

// signals are the queues of which the client of a stream is to be told.
type signals struct {
	mu      sync.Mutex
	pending map[string]struct{}
	wake    chan struct{}
}

func newSignals() *signals {
	return &signals{pending: make(map[string]struct{}), wake: make(chan struct{}, 1)}
}

func (s *signals) signal(name string) {
	s.mu.Lock()
	s.pending[name] = struct{}{}
	s.mu.Unlock()
	wake(s.wake)
}

// take returns the queues, and forgets them.
func (s *signals) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	queues := slices.Sorted(maps.Keys(s.pending))
	clear(s.pending)
	return queues
}

// wake sends a signal unless there is one.
func wake(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
