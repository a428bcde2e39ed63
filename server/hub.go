package server

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
)

// hub passes the signals of a store to the clients that listen. It listens once to
// each of their queues, so that the cost to the store, which signals whenever a task may
// have become claimable, does not grow with the number of clients.
//
// A client that gets a signal claims, and for one task the claim of one client is enough. So
// a signal is passed to one client at first, the one whose last signal is the longest ago.
// While tasks still wait, it is passed to twice as many others after each stagger, until all
// have it: the first ones may have no free slot, or run other kinds. The next signal of the
// store is for all clients again.
type hub struct {
	store   queue.Store
	waiting func(queue string) bool // reports whether tasks wait; true if it is not known

	mu     sync.Mutex // lock order: before the store's
	closed bool
	relays map[string]*relay // by queue; a relay exists while a client listens
	ended  sync.WaitGroup
}

// stagger is the time between two groups of clients that get a signal. A client on this host that
// has a free slot claims within that time. With longer round trips some clients get the signal for
// nothing.
const stagger = time.Millisecond

// maxRelays is how many queues all clients together may listen to: a relay takes about 4 KiB.
const maxRelays = 16_384

// relay receives the signals of one queue.
type relay struct {
	to    []*signals // the least recently signalled first; guarded by hub.mu
	left  int        // how many at the front of to have not got the last signal; guarded by hub.mu
	ready <-chan struct{}
	over  chan struct{}
	stop  func()
}

// signal passes a signal to n of the clients that have not got it, and reports whether some are
// left. The caller must hold the hub's lock.
func (r *relay) signal(name string, n int) (left bool) {
	n = min(n, r.left)
	next := slices.Clone(r.to[:n])
	for _, to := range next {
		to.signal(name)
	}
	copy(r.to[copy(r.to, r.to[n:]):], next)
	r.left -= n
	return r.left > 0
}

func newHub(store queue.Store) *hub {
	h := &hub{store: store, waiting: func(string) bool { return true }, relays: make(map[string]*relay)}
	if known, ok := store.(interface{ HasWaiting(name string) bool }); ok {
		h.waiting = known.HasWaiting
	}
	return h
}

// listen registers a client for the signals of queues, and signals each queue once: a
// signal may have been missed while the client was disconnected. It returns an error if the
// clients listen to maxRelays other queues. The caller calls leave, also after an error.
func (h *hub) listen(to *signals, queues ...string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range queues {
		if len(h.relays) >= maxRelays && h.relays[cmp.Or(name, queue.DefaultQueue)] == nil {
			return fmt.Errorf("%w: clients listen to %d queues, which is the limit", queue.ErrUnavailable, maxRelays)
		}
		name = cmp.Or(name, queue.DefaultQueue) // the name that the client's signals have
		if r := h.relay(name); r != nil && !slices.Contains(r.to, to) {
			r.to = append(r.to, to)
		}
		to.signal(name)
	}
	return nil
}

// relay returns the relay of a queue, and creates it if there is none. It returns nil
// if the hub is closed. The caller must hold mu.
func (h *hub) relay(name string) *relay {
	r := h.relays[name]
	if r == nil && !h.closed {
		r = &relay{over: make(chan struct{})}
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
		if i := slices.Index(r.to, to); i >= 0 {
			r.to = slices.Delete(r.to, i, i+1)
			if i < r.left {
				r.left--
			}
		}
		if len(r.to) == 0 {
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
	more := time.NewTimer(stagger)
	defer more.Stop()
	for n := 1; ; {
		isNew := false
		select {
		case <-r.ready:
			n, isNew = 1, true
		case <-more.C:
			if n *= 2; !h.waiting(name) {
				continue
			}
		case <-r.over:
			return
		}
		h.mu.Lock()
		if isNew {
			r.left = len(r.to)
		}
		left := r.signal(name, n)
		h.mu.Unlock()
		if left {
			more.Reset(stagger)
		}
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
