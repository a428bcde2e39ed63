package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue/cluster/internal/ledger"
)

// market is hosts with token accounts, and leaders, in virtual time. A bucket of its own checks what
// is spent.
type market struct {
	t        *testing.T
	rand     *rand.Rand
	now      time.Time
	rate     float64
	capacity int64
	ledger   *ledger.Ledger
	term     int
	hosts    []*buyer
	faults   bool

	level, extra float64 // what may be spent; extra once after a change of leader
	spent        int64
}

// buyer is a host with one token account.
type buyer struct {
	m       *market
	id      string
	account *ledger.TokenAccount
	term    int // of the leader of its session
	session uint64
	joined  bool
	until   time.Time
	up      []trade
	down    []trade
	needs   []int64
	tier    int
	spent   int64
	dead    bool
	renew   time.Time
}

type trade struct {
	at     time.Time
	sent   time.Time
	claims []ledger.RateClaim
	orders []ledger.RateOrder
}

func newMarket(t *testing.T, seed uint64, rate float64, capacity int64, hosts int) *market {
	t.Helper()
	m := &market{
		t: t, rand: rand.New(rand.NewPCG(seed, 0)), now: time.Unix(0, 0), rate: rate, capacity: capacity,
		level: float64(capacity),
	}
	m.ledger = ledger.New(m.now, lease)
	for i := range hosts {
		m.hosts = append(m.hosts, &buyer{
			m: m, id: fmt.Sprint("host", i), account: ledger.NewTokenAccount(1, "rate", rate, capacity), term: -1, tier: 3,
		})
	}
	return m
}

// change makes a new leader. Hosts find out after a while.
func (m *market) change() {
	m.ledger, m.term, m.extra = ledger.New(m.now, lease), m.term+1, float64(m.capacity)
}

func (m *market) run(d time.Duration) {
	const step = 200 * time.Microsecond
	for end := m.now.Add(d); m.now.Before(end); {
		m.now = m.now.Add(step)
		m.level = min(m.level+step.Seconds()*m.rate, float64(m.capacity))
		m.ledger.Advance(m.now)
		m.publish()
		for _, b := range m.hosts {
			if !b.dead {
				b.step()
			}
		}
	}
}

func (m *market) publish() {
	m.ledger.RateOrders(func(node string, number uint64, o ledger.RateOrder) {
		for _, b := range m.hosts {
			if b.id == node && b.session == number && b.term == m.term {
				b.send(&b.down, trade{orders: []ledger.RateOrder{o}})
			}
		}
	})
}

func (b *buyer) send(fifo *[]trade, t trade) {
	delay := time.Duration(100+b.m.rand.IntN(900)) * time.Microsecond
	if b.m.faults && b.m.rand.IntN(50) == 0 {
		delay = time.Duration(b.m.rand.IntN(1500)) * time.Millisecond
	}
	t.at = b.m.now.Add(delay)
	if n := len(*fifo); n > 0 && (*fifo)[n-1].at.After(t.at) {
		t.at = (*fifo)[n-1].at
	}
	*fifo = append(*fifo, t)
}

// spend takes tokens, and checks that they may be spent.
func (b *buyer) spend() {
	m := b.m
	for len(b.needs) > 0 {
		n := b.account.Take(b.needs[0], false)
		if n == 0 {
			break
		}
		if b.needs[0] -= n; b.needs[0] <= 0 {
			b.needs = b.needs[1:]
		}
		b.spent += n
		m.spent += n
		if m.level -= float64(n); m.level < -1e-6 {
			m.extra, m.level = m.extra+m.level, 0
		}
		if m.extra < -1e-6 {
			m.t.Fatalf("at %s, more is spent than %g a second and %d", m.now.Sub(time.Unix(0, 0)), m.rate, m.capacity)
		}
	}
	if len(b.needs) == 0 {
		b.account.Want(0, 0, 0)
	} else {
		b.account.Want(b.tier, b.needs[0], len(b.needs))
	}
	b.account.Settle()
}

func (b *buyer) step() {
	m := b.m
	for len(b.up) > 0 && !b.up[0].at.After(m.now) && b.term == m.term {
		t := b.up[0]
		b.up = b.up[1:]
		var err error
		if b.joined {
			err = m.ledger.Claim(m.now, b.id, b.session, nil, t.claims)
		} else {
			err = m.ledger.Join(m.now, b.id, b.id, b.session, nil, t.claims)
			b.joined = true
		}
		if err != nil {
			b.term = -1
			break
		}
		m.publish()
		b.send(&b.down, trade{sent: t.sent})
	}
	if b.term < 0 || b.term != m.term && m.rand.IntN(1000) == 0 || m.faults && m.rand.IntN(5000) == 0 {
		b.account.Lose()
		b.session, b.term, b.joined, b.up, b.down = b.session+1, m.term, false, nil, nil
		b.send(&b.up, trade{sent: m.now, claims: []ledger.RateClaim{b.account.Claim()}})
	}
	for len(b.down) > 0 && !b.down[0].at.After(m.now) {
		t := b.down[0]
		b.down = b.down[1:]
		if until := t.sent.Add(valid); until.After(b.until) {
			b.until = until
		}
		for _, o := range t.orders {
			b.account.Apply(o)
		}
	}
	if !m.now.Before(b.until) {
		b.account.Lose()
	}
	b.spend()
	due := !m.now.Before(b.renew)
	if due {
		b.account.Tick()
		b.renew = m.now.Add(lease / 8)
	}
	if due || b.account.Urgent() {
		b.send(&b.up, trade{sent: m.now, claims: []ledger.RateClaim{b.account.Claim()}})
	}
}

// TestModel_NeverAboveRate: whatever is late, lost or dead, no more tokens are spent than the
// rate gives, and the capacity; and once more the capacity after a change of leader. When all
// is well again, the rate can be used.
func TestModel_NeverAboveRate(t *testing.T) {
	seed := seeded.Seed(t)
	for i := range uint64(40) {
		rate := []float64{10, 500, 20_000}[i%3]
		capacity := []int64{1, 20, 1000}[i/3%3]
		m := newMarket(t, seed+i, rate, capacity, 2+int(i)%3)
		m.faults = true
		changes := i%2 == 0
		for range 30 {
			for _, b := range m.hosts {
				b.tier = m.rand.IntN(3)
				switch m.rand.IntN(3) {
				case 0:
					for range m.rand.IntN(50) {
						b.needs = append(b.needs, 1+m.rand.Int64N(capacity*2))
					}
				case 1:
					b.needs = nil
				}
			}
			if changes && m.rand.IntN(8) == 0 {
				m.change()
			}
			m.run(100 * time.Millisecond)
		}
		m.faults = false
		for _, b := range m.hosts {
			b.needs = nil
		}
		m.run(3 * lease)
		last, before := m.hosts[0], m.hosts[0].spent
		for range 100_000 {
			last.needs = append(last.needs, 1)
		}
		const measured = 2 * time.Second
		m.run(measured)
		if got, want := float64(last.spent-before), rate*measured.Seconds(); got < min(want/2, float64(capacity)*500) {
			t.Errorf("seed %d: %g a second, capacity %d: one host spends %g tokens of %g", seed+i, rate, capacity, got, want)
		}
	}
}

// TestC11_HostsShareARate: hosts that always have work get equal shares of a rate.
func TestC11_HostsShareARate(t *testing.T) {
	for _, capacity := range []int64{20, 1000} {
		m := newMarket(t, seeded.Seed(t), 10_000, capacity, 3)
		for _, b := range m.hosts {
			for range 100_000 {
				b.needs = append(b.needs, 1)
			}
		}
		m.run(5 * time.Second)
		t.Logf("capacity %d: %d of 50,000 tokens are spent", capacity, m.spent)
		if m.spent < 20_000 {
			t.Errorf("%d tokens of 50,000 are spent", m.spent)
		}
		for _, b := range m.hosts {
			if b.spent < m.spent*28/100 {
				t.Errorf("one of three hosts spends %d of %d", b.spent, m.spent)
			}
		}
	}
}

// TestC11_LeasedTokensComeBack: tokens that a host has leased and does not use are there for
// others, and a need of the whole capacity is met.
func TestC11_LeasedTokensComeBack(t *testing.T) {
	m := newMarket(t, seeded.Seed(t), 1, 100, 2)
	m.run(200 * time.Second)
	a, b := m.hosts[0], m.hosts[1]
	if a.account.Take(60, false) > 0 {
		t.Error("tokens that were not leased")
	}
	m.run(5 * time.Millisecond)
	if a.account.Tokens() != 60 {
		t.Fatalf("%d tokens are leased", a.account.Tokens())
	}
	b.needs = []int64{100}
	m.run(10 * time.Millisecond)
	if b.spent != 100 {
		t.Errorf("%d tokens are spent, and %d are leased", b.spent, a.account.Tokens())
	}
}

// The smallest capacity counts. A host with a larger one takes what it waits for in parts, also if the other
// host comes while it waits.
func TestC11_HostsOfDifferentCapacity(t *testing.T) {
	for name, waits := range map[string]bool{"the other waits": true, "the other has the rate open": false} {
		t.Run(name, func(t *testing.T) {
			m := newMarket(t, 1, 100, 10, 2)
			large, small := m.hosts[0], m.hosts[1]
			large.account = ledger.NewTokenAccount(1, "rate", m.rate, 100)
			small.dead = true
			large.needs = []int64{60}
			m.extra = 100 // until the second host comes
			m.run(300 * time.Millisecond)
			small.dead = false
			if waits {
				small.needs = []int64{5, 5, 5}
			}
			m.run(3 * time.Second)
			if large.spent != 60 || waits && small.spent != 15 {
				t.Errorf("%d and %d tokens are spent; want 60 and 15", large.spent, small.spent)
			}
			if got := large.account.Capacity(); got != 10 {
				t.Errorf("the bucket holds %d tokens, want 10", got)
			}
		})
	}
}

// TestC11_Debt: a token account may take more than there is, once, and no other token account gets tokens
// until that is repaid.
func TestC11_Debt(t *testing.T) {
	now := time.Unix(0, 0)
	l := ledger.New(now, lease)
	accounts := []*ledger.TokenAccount{
		ledger.NewTokenAccount(1, "rate", 10, 10), ledger.NewTokenAccount(2, "rate", 10, 10),
	}
	claims := func() []ledger.RateClaim { return []ledger.RateClaim{accounts[0].Claim(), accounts[1].Claim()} }
	if err := l.Join(now, "node", "node", 1, nil, claims()); err != nil {
		t.Fatal(err)
	}
	left := time.Duration(0)
	after := func(d time.Duration) {
		now = now.Add(d)
		if err := l.Claim(now, "node", 1, nil, claims()); err != nil {
			t.Fatal(err)
		}
		l.RateOrders(func(_ string, _ uint64, o ledger.RateOrder) {
			accounts[o.ID-1].Apply(o)
			left = o.DebtLeft(now, now)
		})
	}
	after(500 * time.Millisecond) // 5 tokens
	accounts[0].Want(3, 10, 1)
	if n := accounts[0].Take(25, true); n != 0 {
		t.Errorf("%d tokens at once", n)
	}
	after(0)
	if n := accounts[0].Take(25, true); n != 25 || left != 2*time.Second {
		t.Errorf("%d tokens on credit, repaid in %s", n, left)
	}
	accounts[0].Want(0, 0, 0)
	accounts[1].Want(6, 1, 1)
	if n := accounts[1].Take(5, true); n != 0 {
		t.Errorf("%d tokens on credit of a bucket in debt", n)
	}
	for range 3 {
		after(600 * time.Millisecond)
		if n := accounts[1].Tokens(); n != 0 {
			t.Errorf("%d tokens of a bucket in debt", n)
		}
	}
	after(300 * time.Millisecond)
	if accounts[1].Tokens() == 0 {
		t.Error("no tokens when the debt is repaid")
	}
}
