package server

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/stintgo/stint/queue"
)

// hub passes the signals of a store to the clients that listen. It listens once to
// each of their queues, so that the cost to the store, which signals with most changes of
// a task, does not grow with the number of clients.
type hub struct {
	store queue.Store

	mu     sync.Mutex // lock order: before the store's
	closed bool
	relays map[string]*relay // by queue; a relay exists while a client listens
	ended  sync.WaitGroup
}

// relay receives the signals of one queue.
type relay struct {
	to    map[*signals]struct{} // guarded by the hub's lock
	ready <-chan struct{}
	over  chan struct{}
	stop  func()
}

func newHub(store queue.Store) *hub { return &hub{store: store, relays: make(map[string]*relay)} }

// listen registers a client for the signals of queues, and signals each queue once: a
// signal may have been missed while the client was disconnected.
func (h *hub) listen(to *signals, queues ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range queues {
		name = cmp.Or(name, queue.DefaultQueue) // the name that the client's signals have
		if r := h.relay(name); r != nil {
			r.to[to] = struct{}{}
		}
		to.signal(name)
	}
}

// relay returns the relay of a queue, and creates it if there is none. It returns nil
// if the hub is closed. The caller must hold mu.
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

// leave unregisters a client from the signals of queues.
func (h *hub) leave(to *signals, queues ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range queues {
		name = cmp.Or(name, queue.DefaultQueue)
		r := h.relays[name]
		if r == nil {
			continue
		}
		if delete(r.to, to); len(r.to) == 0 {
			h.end(name, r)
		}
	}
}

// end ends a relay. The caller must hold mu.
func (h *hub) end(name string, r *relay) {
	r.stop()
	close(r.over)
	delete(h.relays, name)
}

// run passes signals on until the relay ends.
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

// close ends all relays, and waits until they have ended.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for name, r := range h.relays {
		h.end(name, r)
	}
	h.mu.Unlock()
	h.ended.Wait()
}

// signals are the queues whose signals have not been written to a client's stream yet.
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

// take returns the pending queues and clears them.
func (s *signals) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	queues := slices.Sorted(maps.Keys(s.pending))
	clear(s.pending)
	return queues
}

// wake sends a signal unless one is pending.
func wake(to chan struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
