package cluster

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue/cluster/internal/ledger"
)

// permitsPath is where the leader keeps the permits of all nodes. A request lasts as long as
// the session of a node: its body is a hello and then reports, the answer is orders, each of
// them a line of JSON.
const permitsPath = "/cluster/permits"

// permitLease is how long a node has its permits without an answer of the leader. It is longer than
// the leader's lease (2 s) and the opening of the store together: otherwise the death of a leader
// would end the work of all hosts.
const permitLease = 5 * time.Second

// hello begins a session.
type hello struct {
	Node    string `json:"node"` // differs for each process
	Name    string `json:"name"`
	Session uint64 `json:"session"` // higher than that of all former sessions of the node
}

// report is what a node sends.
type report struct {
	Seq    uint64             `json:"seq"`
	Claims []ledger.Claim     `json:"claims,omitempty"`
	Rates  []ledger.RateClaim `json:"rates,omitempty"`
}

// answer is what the leader sends.
type answer struct {
	Ack       uint64             `json:"ack"` // the report before this answer
	Orders    []ledger.Order     `json:"orders,omitempty"`
	Usage     []ledger.Usage     `json:"usage,omitempty"`
	Rates     []ledger.RateOrder `json:"rates,omitempty"`
	RateUsage []ledger.RateUsage `json:"rate_usage,omitempty"`
}

// hub is the ledger of the node that leads, and the sessions of all nodes. If the lease of
// the leader ends, the ledger is dropped with all that it has decided and not sent: another
// leader may have decided since. If the lease is renewed after all, the hub begins as a new
// leader does.
type hub struct {
	leads func() bool // no other node has led before the call
	lease time.Duration

	mu       sync.Mutex // guards the fields below
	ledger   *ledger.Ledger
	sessions map[string]*session // by node
	timer    *time.Timer
	closed   bool
}

// session is a connection of a node.
type session struct {
	number uint64
	end    context.CancelFunc
	signal chan struct{} // receives when the fields below have changed

	// Guarded by the hub's mu: what the node has to be sent.
	ack       uint64
	orders    map[uint64]ledger.Order // by account
	usage     map[uint64]ledger.Usage
	rates     map[uint64]ledger.RateOrder // by token account
	rateUsage map[uint64]ledger.RateUsage
}

// vacancy is implemented by stores that know how long no process had led.
type vacancy interface{ Vacant() time.Duration }

// newHub returns the hub of a node that leads since before the call. If no node had led for
// two leases, no permits of a former leader are left; the second lease is for a database that
// has lost the last renewals.
func newHub(lease time.Duration, store Store) *hub {
	since := clock.Now()
	if v, ok := store.(vacancy); ok && v.Vacant() >= 2*lease {
		since = since.Add(-lease)
	}
	return &hub{leads: store.Leads, lease: lease, ledger: ledger.New(since, lease), sessions: map[string]*session{}}
}

// close ends all sessions. Nothing is granted any more.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.dropLocked()
}

func (h *hub) dropLocked() {
	h.ledger = nil
	for node, s := range h.sessions {
		s.end()
		delete(h.sessions, node)
	}
	if h.timer != nil {
		h.timer.Stop()
	}
}

// do makes a change of the ledger, and sends what follows from it. The lease is looked at
// after the decision: so no other leader has decided before.
func (h *hub) do(change func(now time.Time, l *ledger.Ledger) error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return errNoLeader
	case h.ledger == nil && h.leads():
		h.ledger = ledger.New(clock.Now(), h.lease)
	case h.ledger == nil:
		return errLeaseOver
	}
	now := clock.Now()
	err := change(now, h.ledger)
	if !h.leads() {
		h.dropLocked()
		return errLeaseOver
	}
	h.ledger.Orders(func(node string, number uint64, o ledger.Order) {
		if s := h.sessions[node]; s != nil && s.number == number {
			s.orders[o.ID] = o
			s.wake()
		}
	})
	h.ledger.RateOrders(func(node string, number uint64, o ledger.RateOrder) {
		if s := h.sessions[node]; s != nil && s.number == number {
			s.rates[o.ID] = o
			s.wake()
		}
	})
	if next := h.ledger.Next(); !next.IsZero() {
		if h.timer != nil {
			h.timer.Stop()
		}
		h.timer = time.AfterFunc(next.Sub(now), h.advance)
	}
	return err
}

// advance does what is due.
func (h *hub) advance() {
	_ = h.do(func(now time.Time, l *ledger.Ledger) error { // then there is nothing to do
		l.Advance(now)
		return nil
	})
}

func (s *session) wake() {
	select {
	case s.signal <- struct{}{}:
	default:
	}
}

// join begins a session, which ends the node's former one.
func (h *hub) join(q hello, r report, end context.CancelFunc) (*session, error) {
	s := &session{
		number: q.Session, end: end, signal: make(chan struct{}, 1),
		orders: map[uint64]ledger.Order{}, usage: map[uint64]ledger.Usage{},
		rates: map[uint64]ledger.RateOrder{}, rateUsage: map[uint64]ledger.RateUsage{},
	}
	return s, h.do(func(now time.Time, l *ledger.Ledger) error {
		if err := l.Join(now, q.Node, q.Name, q.Session, r.Claims, r.Rates); err != nil {
			return err
		}
		if former := h.sessions[q.Node]; former != nil {
			former.end()
		}
		h.sessions[q.Node] = s
		s.received(now, q.Node, l, r)
		return nil
	})
}

// received records the answer to a report. The caller holds the hub's lock.
func (s *session) received(now time.Time, node string, l *ledger.Ledger, r report) {
	s.ack = r.Seq
	for _, c := range r.Claims {
		if u, ok := l.Usage(node, c.ID); c.Ask && ok {
			s.usage[c.ID] = u
		}
	}
	for _, c := range r.Rates {
		if u, ok := l.RateUsage(now, node, c.ID); c.Ask && ok {
			s.rateUsage[c.ID] = u
		}
	}
	s.wake()
}

// next returns what has to be sent, and whether the session has not been ended: after that, nothing is
// confirmed, because the lease of the leader may be over.
func (h *hub) next(node string, s *session) (a answer, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[node] != s {
		return a, false
	}
	a.Ack = s.ack
	for _, o := range s.orders {
		a.Orders = append(a.Orders, o)
	}
	for _, u := range s.usage {
		a.Usage = append(a.Usage, u)
	}
	for _, o := range s.rates {
		a.Rates = append(a.Rates, o)
	}
	for _, u := range s.rateUsage {
		a.RateUsage = append(a.RateUsage, u)
	}
	clear(s.orders)
	clear(s.usage)
	clear(s.rates)
	clear(s.rateUsage)
	return a, true
}

// left ends a session. The permits of its node stay for their lease.
func (h *hub) left(node string, s *session) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sessions[node] == s {
		delete(h.sessions, node)
	}
}

// ServeHTTP serves the session of a node, whose token the caller has checked.
func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := h.serve(w, r); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// serve serves a session. It returns an error if the session has not begun.
func (h *hub) serve(w http.ResponseWriter, r *http.Request) error {
	control := http.NewResponseController(w)
	if err := control.EnableFullDuplex(); err != nil {
		return err
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	// The reads below have no other end. A deadline that is set after serve has returned would
	// be set on the writer of no request.
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		_ = control.SetReadDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-interrupted
		}
	}()
	in := json.NewDecoder(r.Body)
	var q hello
	var first report
	if err := in.Decode(&q); err != nil {
		return err
	}
	if err := in.Decode(&first); err != nil {
		return err
	}
	s, err := h.join(q, first, end)
	if err != nil {
		return err
	}
	defer h.left(q.Node, s)
	var sends sync.WaitGroup
	defer sends.Wait()
	defer end()
	sends.Go(func() {
		defer end()
		h.send(ctx, w, control, q.Node, s)
	})
	for {
		var next report
		if err := in.Decode(&next); err != nil {
			return nil // the node has ended the session, or ctx has
		}
		err := h.do(func(now time.Time, l *ledger.Ledger) error {
			if err := l.Claim(now, q.Node, q.Session, next.Claims, next.Rates); err != nil {
				return err
			}
			s.received(now, q.Node, l, next)
			return nil
		})
		if err != nil {
			return nil // the node joins again
		}
	}
}

// send sends answers until ctx ends or the node does not read them.
func (h *hub) send(
	ctx context.Context, w http.ResponseWriter, control *http.ResponseController, node string, s *session,
) {
	out := json.NewEncoder(w)
	for {
		select {
		case <-s.signal:
		case <-ctx.Done():
			return
		}
		a, ok := h.next(node, s)
		if !ok || control.SetWriteDeadline(clock.Now().Add(h.lease)) != nil || out.Encode(a) != nil ||
			control.Flush() != nil {
			return
		}
	}
}
