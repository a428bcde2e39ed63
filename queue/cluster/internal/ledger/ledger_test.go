package ledger_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue/cluster/internal/ledger"
)

// TestModel_NeverAboveMax: whatever is late, lost, stopped or deposed, no more permits are in
// use than there are; and when all is well again, all of them can be used.
func TestModel_NeverAboveMax(t *testing.T) {
	seed := seeded.Seed(t)
	full := 0
	for i := range uint64(40) {
		most := 1 + int(i)%7
		w := newWorld(t, seed+i, most, 2+int(i)%4)
		w.faults = true
		for _, h := range w.hosts {
			h.takes = time.Duration(1+w.rand.IntN(400)) * time.Millisecond
		}
		for range 40 {
			for _, h := range w.hosts {
				switch w.rand.IntN(3) {
				case 0:
					h.queued += w.rand.IntN(20)
				case 1:
					h.queued = 0
				}
				h.tier = w.rand.IntN(3)
			}
			switch {
			case w.leader == nil:
				w.lead(w.now)
			case w.rand.IntN(12) == 0:
				w.depose()
			}
			w.run(100 * time.Millisecond)
		}
		if w.peak == most {
			full++
		}
		w.faults = false
		if w.leader == nil {
			w.lead(w.now)
		}
		for _, h := range w.hosts {
			h.queued = 0
		}
		w.run(4 * lease)
		last := w.hosts[0]
		last.queued, last.takes = most, time.Hour
		w.run(20 * time.Millisecond)
		if last.account.Used() != most {
			t.Fatalf("seed %d: %d permits of %d can be used when all others are free", seed+i, last.account.Used(), most)
		}
	}
	t.Logf("all permits were in use at once in %d of 40 worlds", full)
	if full < 33 {
		t.Error("the worlds hardly use their permits")
	}
}

// served runs a world, and returns how much work each of its hosts has begun meanwhile.
func served(w *world, d time.Duration) (counts []int) {
	before := make([]int, len(w.hosts))
	for i, h := range w.hosts {
		before[i] = h.served
	}
	w.run(d)
	for i, h := range w.hosts {
		counts = append(counts, h.served-before[i])
	}
	return counts
}

// TestC11_HostsShareEqually: hosts that always have work get equal shares, also if there are
// fewer permits than hosts, or their number is no multiple of that of the hosts.
func TestC11_HostsShareEqually(t *testing.T) {
	for _, most := range []int{1, 2, 3, 8} {
		w := newWorld(t, seeded.Seed(t), most, 3)
		for i, h := range w.hosts {
			w.run(time.Duration(i) * 50 * time.Millisecond) // the first host begins with all permits
			h.queued = 1 << 30
		}
		w.run(500 * time.Millisecond)
		counts := served(w, 10*time.Second)
		all := counts[0] + counts[1] + counts[2]
		t.Logf("%d permits: %v, %d %% of what one host would do", most, counts, all/(most*20))
		for _, n := range counts {
			if n < all*28/100 {
				t.Errorf("%d permits: the hosts were served %v times", most, counts)
			}
		}
		if all < most*2000*75/100 {
			t.Errorf("%d permits were used %d times in 10 s", most, all)
		}
	}
}

// TestC11_TiersOverHosts: a permit goes to the highest tier of all hosts, and a host without
// a permit does not wait for ever.
func TestC11_TiersOverHosts(t *testing.T) {
	w := newWorld(t, seeded.Seed(t), 4, 2)
	low, high := w.hosts[0], w.hosts[1]
	low.queued, low.tier = 1<<30, 2
	w.run(100 * time.Millisecond)
	high.queued, high.tier = 1<<30, 3
	w.run(100 * time.Millisecond)
	counts := served(w, 20*time.Second)
	t.Logf("%d of the low tier, %d of the high one", counts[0], counts[1])
	if counts[0] < 15 || counts[0] > 40 {
		t.Errorf("a host of a lower tier was served %d times in 20 s", counts[0])
	}
}

// TestC11_IdlePermitsMove: permits that a host does not use are at once there for one that
// waits, and a host that waits alone returns none.
func TestC11_IdlePermitsMove(t *testing.T) {
	w := newWorld(t, seeded.Seed(t), 4, 2)
	a, b := w.hosts[0], w.hosts[1]
	a.queued = 40
	w.run(60 * time.Millisecond)
	if a.served != 40 || a.account.Idle() == 0 {
		t.Fatalf("%d served, %d permits are idle", a.served, a.account.Idle())
	}
	b.queued, b.takes = 4, time.Hour
	w.run(6 * time.Millisecond)
	if b.account.Used() != 4 {
		t.Errorf("%d permits are used, and %d idle elsewhere", b.account.Used(), a.account.Idle())
	}
}

// TestC11_LocalWorkNeedsNoLeader: a host that waits alone hands its permits over by itself.
func TestC11_LocalWorkNeedsNoLeader(t *testing.T) {
	w := newWorld(t, seeded.Seed(t), 2, 1)
	h := w.hosts[0]
	h.queued = 1000
	w.run(100 * time.Millisecond)
	before, seq := h.served, h.session.seq
	w.run(100 * time.Millisecond)
	if done, sent := h.served-before, h.session.seq-seq; done < 30 || sent > 2 {
		t.Errorf("%d claims for %d pieces of work", sent, done)
	}
}

// TestC11_HoldersOutliveTheirLeader: the next leader leaves the permits with their holders,
// and passes on those that they return, before it knows of all.
func TestC11_HoldersOutliveTheirLeader(t *testing.T) {
	w := newWorld(t, seeded.Seed(t), 4, 3)
	for _, h := range w.hosts[:2] {
		h.queued, h.takes = 2, 900*time.Millisecond
	}
	w.run(400 * time.Millisecond)
	w.depose()
	w.run(lease * 2 / 10)
	w.lead(w.now)
	w.hosts[2].queued = 4
	w.run(30 * time.Millisecond)
	if a, b := w.hosts[0].account.Used(), w.hosts[1].account.Used(); a+b != 4 {
		t.Fatalf("%d permits are left of 4", a+b)
	}
	w.run(lease * 7 / 10) // less than a lease since the beginning
	if n := w.hosts[2].served; n != 4 {
		t.Errorf("%d of the permits that were returned have been used", n)
	}
}

// TestC11_UnclaimedPermitsComeBack: permits of a host that has died are free after its lease,
// and those of one that dies with the leader after the first lease of the next leader.
func TestC11_UnclaimedPermitsComeBack(t *testing.T) {
	for _, deposed := range []bool{false, true} {
		w := newWorld(t, seeded.Seed(t), 4, 2)
		dead, other := w.hosts[0], w.hosts[1]
		dead.queued, dead.takes = 4, time.Hour
		w.run(100 * time.Millisecond)
		dead.stopped = w.now.Add(time.Hour)
		other.queued, other.takes = 4, time.Hour
		if deposed {
			w.depose()
			w.lead(w.now)
		}
		w.run(lease * 8 / 10)
		if n := other.account.Used(); n > 0 {
			t.Fatalf("%d permits are in use twice", n)
		}
		w.run(lease*2/10 + 10*time.Millisecond)
		if n := other.account.Used(); n != 4 {
			t.Errorf("%d of 4 permits have come back after a lease", n)
		}
	}
}

// TestC11_SmallestMax: the smallest Max of all hosts counts. Permits that are in use above it
// are not taken away, but not granted again.
func TestC11_SmallestMax(t *testing.T) {
	w := newWorld(t, seeded.Seed(t), 4, 1)
	w.hosts[0].queued, w.hosts[0].takes = 1<<30, 100*time.Millisecond
	w.run(50 * time.Millisecond)
	claim := ledger.Claim{ID: 1, Limit: "limit", Max: 2}
	if err := w.leader.Join(w.now, "small", "small", 1, []ledger.Claim{claim}, nil); err != nil {
		t.Fatal(err)
	}
	if n := w.hosts[0].account.Used(); n != 4 {
		t.Errorf("%d permits are in use before the work ends", n)
	}
	w.run(100 * time.Millisecond)
	if n := w.hosts[0].account.Used(); n != 2 {
		t.Errorf("%d permits are in use, the smallest Max is 2", n)
	}
	w.run(lease) // the other host has gone
	if n := w.hosts[0].account.Used(); n != 4 {
		t.Errorf("%d permits are in use, the only Max is 4", n)
	}
}

// TestC11_LateClaimsAreRevoked: permits whose lease has ended are revoked, however the clock
// of their host runs. A session that was replaced, and one whose lease has ended, is over.
func TestC11_LateClaimsAreRevoked(t *testing.T) {
	now := time.Unix(0, 0)
	l := ledger.New(now.Add(-lease), lease)
	late := ledger.NewAccount(7, "limit", 2)
	late.Want(3, 2)
	apply := func() (received, revoked bool) {
		l.Orders(func(node string, _ uint64, o ledger.Order) {
			if node == "late" {
				received, revoked = late.Apply(o)
			}
		})
		return received, revoked
	}
	join := func(session uint64) error {
		return l.Join(now, "late", "late", session, []ledger.Claim{late.Claim()}, nil)
	}
	if err := join(1); err != nil {
		t.Fatal(err)
	}
	if received, _ := apply(); !received || !late.Take() || !late.Take() {
		t.Fatal("no permits")
	}
	late.Want(3, 1)
	now = now.Add(lease)
	if err := l.Claim(now, "late", 1, []ledger.Claim{late.Claim()}, nil); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("a claim after the lease: %v", err)
	}
	if err := join(2); err != nil {
		t.Fatal(err)
	}
	if received, revoked := apply(); !received || !revoked || late.Held() != 1 || late.Used() != 0 {
		t.Errorf("received %t, revoked %t, %d permits", received, revoked, late.Held())
	}
	if !late.Take() {
		t.Error("the new permit cannot be used")
	}
	if err := join(2); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("a session that is not new: %v", err)
	}
	if err := join(3); err != nil {
		t.Fatal(err)
	}
	if _, revoked := apply(); revoked || late.Used() != 1 {
		t.Error("permits of this leader were revoked")
	}
	if err := l.Claim(now, "late", 2, nil, nil); !errors.Is(err, ledger.ErrUnknown) {
		t.Errorf("a claim of a former session: %v", err)
	}
}

// TestC11_BusyUntilItAsksOrLoses: an account that leaves permits is granted no others until
// it asks. If it loses them, it needs others at once: nothing makes it ask.
func TestC11_BusyUntilItAsksOrLoses(t *testing.T) {
	for name, end := range map[string]func(a *ledger.Account){
		"it asks": func(a *ledger.Account) {
			a.Take()
			a.Put()
			a.Leave()
			a.Take()
		},
		"it loses": func(a *ledger.Account) { a.Lose() },
	} {
		a := ledger.NewAccount(1, "limit", 2)
		a.Want(3, 2)
		a.Apply(ledger.Order{ID: 1, Granted: 1, Keep: ledger.All})
		a.Busy()
		if c := a.Claim(); c.Need != 0 {
			t.Errorf("%s: a busy account needs %d permits", name, c.Need)
		}
		end(a)
		if c := a.Claim(); c.Need != 2 {
			t.Errorf("%s: the account needs %d permits of 2", name, c.Need)
		}
	}
}

// A new leader grants unclaimed permits as soon as its first lease is over, though the nodes
// only repeat what they have claimed.
func TestC11_GrantsWithoutNews(t *testing.T) {
	const lease = 5 * time.Second // longer than a node waits until it goes first
	begun := time.Unix(1000, 0)
	l := ledger.New(begun, lease)
	waits := []ledger.Claim{{ID: 1, Limit: "l", Max: 1, Need: 1, Waiting: 1}}
	if err := l.Join(begun, "n", "n", 1, waits, nil); err != nil {
		t.Fatal(err)
	}
	if err := l.Claim(begun.Add(lease/2), "n", 1, waits, nil); err != nil {
		t.Fatal(err)
	}
	now := begun
	for granted := uint64(0); granted == 0; {
		l.Orders(func(_ string, _ uint64, o ledger.Order) { granted = o.Granted })
		if next := l.Next(); granted == 0 && (next.IsZero() || next.After(begun.Add(lease))) {
			t.Fatalf("it looks again at %s, and its first lease ends at %s", next, begun.Add(lease))
		} else if granted == 0 {
			now = next
		}
		l.Advance(now)
	}
	if now.Before(begun.Add(lease)) {
		t.Errorf("a permit is granted %s after the beginning", now.Sub(begun))
	}
	// The order is lost with its session, and the node claims the same again.
	if err := l.Join(now, "n", "n", 2, waits, nil); err != nil {
		t.Fatal(err)
	}
	again := false
	l.Orders(func(_ string, _ uint64, o ledger.Order) { again = o.Granted == 1 })
	if !again {
		t.Error("a permit that was lost on its way is not granted again")
	}
}
