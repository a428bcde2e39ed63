package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stintgo/stint/queue/cluster/internal/ledger"
)

const (
	lease = 1000 * time.Millisecond
	valid = lease * 9 / 10
)

// world is hosts and leaders in virtual time, with messages that are late or lost. It counts
// the permits in use.
type world struct {
	t      *testing.T
	rand   *rand.Rand
	now    time.Time
	most   int
	hosts  []*host
	leader *leader // nil while none leads
	former []*leader
	faults bool
	peak   int
}

// leader is a ledger, and whether its process may answer.
type leader struct {
	*ledger.Ledger
	sessions map[string]*session
}

// host is a node with one account, and a scheduler that uses its permits.
type host struct {
	w       *world
	id      string
	account *ledger.Account
	until   time.Time // the end of its lease
	session *session
	last    uint64 // the number of its last session
	stopped time.Time
	ends    []time.Time // of the work on its permits
	queued  int
	tier    int
	served  int
	takes   time.Duration // of one piece of work
	tick    time.Time
}

// session is a connection of a host to a leader.
type session struct {
	host     *host
	to       *leader
	number   uint64
	cut      bool
	joined   bool
	seq      uint64
	sent     map[uint64]time.Time
	up, down []message
}

type message struct {
	at     time.Time
	seq    uint64 // of a claim, or that it acknowledges
	claims []ledger.Claim
	orders []ledger.Order
}

func newWorld(t *testing.T, seed uint64, most, hosts int) *world {
	t.Helper()
	w := &world{t: t, rand: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(0, 0), most: most}
	for i := range hosts {
		w.hosts = append(w.hosts, &host{
			w: w, id: fmt.Sprint("host", i), account: ledger.NewAccount(1, "limit", most), takes: 5 * time.Millisecond,
		})
	}
	w.lead(w.now.Add(-lease))
	return w
}

func (w *world) lead(since time.Time) {
	w.leader = &leader{ledger.New(since, lease), map[string]*session{}}
}

// depose ends the lead. Nothing that the leader does later is answered.
func (w *world) depose() {
	w.former, w.leader = append(w.former, w.leader), nil
}

// delay is how long a message takes.
func (w *world) delay() time.Duration {
	if w.faults && w.rand.IntN(50) == 0 {
		return time.Duration(w.rand.IntN(1500)) * time.Millisecond
	}
	return time.Duration(100+w.rand.IntN(900)) * time.Microsecond
}

// step advances the time by 200 µs.
func (w *world) step() {
	w.now = w.now.Add(200 * time.Microsecond)
	if w.leader != nil {
		w.leader.Advance(w.now)
		w.publish(w.leader)
	}
	for _, h := range w.hosts {
		h.step()
	}
	used := 0
	for _, h := range w.hosts {
		if w.now.Before(h.until) {
			used += h.account.Used()
		}
	}
	w.peak = max(w.peak, used)
	if used > w.most {
		w.t.Fatalf("at %s, %d permits are in use, the limit is %d", w.now.Sub(time.Unix(0, 0)), used, w.most)
	}
}

func (w *world) run(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.step()
	}
}

// publish sends the orders of a leader.
func (w *world) publish(l *leader) {
	l.Orders(func(node string, number uint64, o ledger.Order) {
		if s := l.sessions[node]; s != nil && s.number == number {
			s.send(&s.down, message{orders: []ledger.Order{o}})
		}
	})
}

// send sends a message. Those of a session arrive in order.
func (s *session) send(fifo *[]message, m message) {
	m.at = s.host.w.now.Add(s.host.w.delay())
	if n := len(*fifo); n > 0 && (*fifo)[n-1].at.After(m.at) {
		m.at = (*fifo)[n-1].at
	}
	*fifo = append(*fifo, m)
}

// claim sends the state of a host.
func (s *session) claim() {
	s.seq++
	s.sent[s.seq] = s.host.w.now
	s.send(&s.up, message{seq: s.seq, claims: []ledger.Claim{s.host.account.Claim()}})
}

// receive has the leader receive claims.
func (s *session) receive() {
	w, l := s.host.w, s.to
	for len(s.up) > 0 && !s.up[0].at.After(w.now) {
		m := s.up[0]
		s.up = s.up[1:]
		var err error
		if !s.joined {
			s.joined = true
			if err = l.Join(w.now, s.host.id, s.host.id, s.number, m.claims, nil); err == nil {
				l.sessions[s.host.id] = s
			}
		} else {
			err = l.Claim(w.now, s.host.id, s.number, m.claims, nil)
		}
		if err != nil || l != w.leader {
			s.cut = true
			return
		}
		w.publish(l)
		s.send(&s.down, message{seq: m.seq})
	}
}

// step lets a host do what is due.
func (h *host) step() {
	w := h.w
	if s := h.session; s != nil && !s.cut {
		s.receive()
	}
	if h.stopped.After(w.now) {
		return
	}
	if w.faults && w.rand.IntN(20_000) == 0 {
		h.stopped = w.now.Add(time.Duration(w.rand.IntN(2500)) * time.Millisecond)
		return
	}
	if w.faults && w.rand.IntN(5_000) == 0 && h.session != nil {
		h.session.cut = true
	}
	if !w.now.Before(h.until) {
		h.account.Lose()
		h.ends = h.ends[:0]
	}
	h.connect()
	h.obey()
	h.work()
	if s := h.session; s != nil {
		if due := !w.now.Before(h.tick); due {
			h.account.Tick()
			h.tick = w.now.Add(lease / 8)
			s.claim()
		} else if h.account.Urgent() {
			s.claim()
		}
	}
}

// connect begins a session with the leader.
func (h *host) connect() {
	w := h.w
	if s := h.session; s != nil && (s.cut || s.to != w.leader && w.leader != nil && w.rand.IntN(500) == 0) {
		h.session = nil
	}
	if h.session == nil && w.leader != nil {
		h.last++
		h.session = &session{host: h, to: w.leader, number: h.last, sent: map[uint64]time.Time{}}
		h.session.claim()
	}
}

// obey applies the orders that have arrived.
func (h *host) obey() {
	s := h.session
	for s != nil && len(s.down) > 0 && !s.down[0].at.After(h.w.now) {
		m := s.down[0]
		s.down = s.down[1:]
		if until := s.sent[m.seq].Add(valid); m.seq > 0 && until.After(h.until) {
			h.until = until
		}
		for _, o := range m.orders {
			if _, revoked := h.account.Apply(o); revoked {
				h.ends = h.ends[:0]
			}
		}
	}
}

// work is what a scheduler does: it ends work that is over, and begins other work.
func (h *host) work() {
	w := h.w
	var ends []time.Time
	for _, end := range h.ends {
		if w.now.Before(end) {
			ends = append(ends, end)
			continue
		}
		h.account.Put()
	}
	h.ends = ends
	for h.queued > 0 && w.now.Before(h.until) && h.account.Take() {
		h.queued--
		h.served++
		h.ends = append(h.ends, w.now.Add(h.takes))
	}
	h.account.Want(h.tier, h.queued)
}
