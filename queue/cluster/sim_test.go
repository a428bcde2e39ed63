package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
)

// simPort is the port of the first group of a host.
const simPort = 5000

// simHost is a process of the simulation.
type simHost struct {
	name   string
	cut    atomic.Bool // it reaches neither the database nor others
	closed atomic.Bool
	groups atomic.Pointer[cluster.Groups]
}

// sim is a simulation of hosts that lead groups: the nodes, the protocol of the leases, the
// state machine and the requests between nodes are real, the database and the network are not.
type sim struct {
	t      *testing.T
	random *lockedRand
	dbs    []*simDB
	moves  atomic.Int64 // hand-overs
	mu     sync.Mutex   // guards hosts and served
	hosts  map[string]*simHost
	served map[string]http.Handler // by address
	closes sync.WaitGroup
	number int // of the last host
}

// Enabled, Handle, WithAttrs and WithGroup make the simulation a handler of logs that counts
// the hand-overs.
func (s *sim) Enabled(context.Context, slog.Level) bool { return true }

func (s *sim) Handle(_ context.Context, r slog.Record) error {
	if strings.HasPrefix(r.Message, "this node hands its group over") {
		s.moves.Add(1)
	}
	return nil
}

func (s *sim) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s *sim) WithGroup(string) slog.Handler      { return s }

// Serve is as [cluster.Network] says.
func (s *sim) Serve(address string, h http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.served[address] = h
}

// Connect is as [cluster.Network] says.
func (s *sim) Connect(from, address string) cluster.Transport {
	s.mu.Lock()
	defer s.mu.Unlock()
	return simWire{s, s.hosts[from], address}
}

// simWire is the connection of a host to an address.
type simWire struct {
	s    *sim
	from *simHost
	to   string
}

func (simWire) CloseIdleConnections() {}

// RoundTrip calls the node at the address. A cut connection is given up after 4 s, as a real
// one is.
func (w simWire) RoundTrip(r *http.Request) (*http.Response, error) {
	host, _, _ := strings.Cut(w.to, ":")
	w.s.mu.Lock()
	to, h := w.s.hosts[host], w.s.served[w.to]
	w.s.mu.Unlock()
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		_ = r.Body.Close()
	}
	silent := func() bool { return w.from.cut.Load() || to != nil && to.cut.Load() }
	if silent() {
		given := time.NewTimer(4 * time.Second)
		defer given.Stop()
		select {
		case <-given.C:
		case <-r.Context().Done():
		}
		return nil, errCut
	}
	if to == nil || h == nil {
		return nil, errors.New("connection refused")
	}
	in := r.Clone(r.Context())
	in.Body, in.RemoteAddr = io.NopCloser(bytes.NewReader(body)), w.from.name+":1"
	out := httptest.NewRecorder()
	h.ServeHTTP(out, in)
	if silent() {
		return nil, errCut
	}
	return out.Result(), nil
}

// start starts a host.
func (s *sim) start() {
	s.mu.Lock()
	s.number++
	h := &simHost{name: fmt.Sprintf("h%d", s.number)}
	s.hosts[h.name] = h
	s.mu.Unlock()
	groups := make([]cluster.Group, len(s.dbs))
	for i, db := range s.dbs {
		groups[i] = cluster.Group{Name: fmt.Sprintf("group %d", i), Open: func(
			ctx context.Context, self queue.Leader,
		) (cluster.Store, error) {
			return db.open(ctx, h, self)
		}}
		if i > 0 {
			groups[i].Queues = []string{queueOf(i)}
		}
	}
	g, err := cluster.OpenGroupsOver(s.t.Context(), groups, cluster.Config{
		Name: h.name, Listen: fmt.Sprintf("%s:%d", h.name, simPort), Logger: slog.New(s), Patience: time.Minute,
	}, s)
	if err != nil {
		s.t.Errorf("host %s: %v", h.name, err)
		return
	}
	h.groups.Store(g)
}

// startAll starts hosts at the same time.
func (s *sim) startAll(n int) {
	var starts sync.WaitGroup
	for range n {
		starts.Go(s.start)
	}
	starts.Wait()
}

// live returns the hosts that have not died, by name.
func (s *sim) live() (found []*simHost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.hosts {
		if !h.cut.Load() && h.groups.Load() != nil {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, func(a, b *simHost) int { return strings.Compare(a.name, b.name) })
	return found
}

// die cuts a host off for good. Its goroutines end some time later, without an effect.
func (s *sim) die(h *simHost) {
	h.cut.Store(true)
	s.closes.Go(func() {
		_ = h.groups.Load().Close() // it cannot reach the database
		h.closed.Store(true)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.hosts, h.name)
	})
}

// leads returns how many groups each live host leads, and their sum.
func (s *sim) leads() (counts map[*simHost]int, sum int) {
	counts = make(map[*simHost]int)
	for _, h := range s.live() {
		counts[h] = 0
	}
	for _, db := range s.dbs {
		for _, store := range db.leading() {
			if _, live := counts[store.at]; live {
				counts[store.at]++
				sum++
			}
		}
	}
	return counts, sum
}

// balanced reports whether all groups are led, and no host leads two groups more than another.
func (s *sim) balanced() bool {
	counts, sum := s.leads()
	least, most := sum, 0
	for _, n := range counts {
		least, most = min(least, n), max(most, n)
	}
	return sum == len(s.dbs) && most-least <= 1
}

// watch lets time pass, and checks that no group has two leaders at a time, and none for
// longer than the lease and what it takes to notice.
func (s *sim) watch(d time.Duration, vacant map[*simDB]time.Duration) {
	const (
		step  = 50 * time.Millisecond
		bound = 2*time.Second + 4*time.Second // the lease, and the bound on top of it
	)
	for range d / step {
		<-time.After(step)
		for i, db := range s.dbs {
			switch leading := db.leading(); {
			case len(leading) > 1:
				s.t.Fatalf("group %d has the leaders %s and %s", i, leading[0].at.name, leading[1].at.name)
			case len(leading) == 1 && !leading[0].at.cut.Load():
				vacant[db] = 0
			default:
				if vacant[db] += step; vacant[db] > bound {
					s.t.Fatalf("group %d has had no leader for %s", i, vacant[db])
				}
			}
		}
	}
}

// TestC11_SimulatedHosts: hosts that lead groups die at random, and others come. No group has two
// leaders or is long without one; the groups are spread evenly in a bounded number of moves,
// and then stay where they are.
func TestC11_SimulatedHosts(t *testing.T) {
	for _, c := range []struct{ hosts, groups, rounds int }{
		{hosts: manyHosts, groups: 4, rounds: 5},
		{hosts: 20, groups: manyGroups, rounds: manyRounds},
		{hosts: 3, groups: 20, rounds: 6},
	} {
		t.Run(fmt.Sprintf("%d hosts, %d groups", c.hosts, c.groups), func(t *testing.T) {
			random := &lockedRand{r: seeded.Rand(t)}
			synctest.Test(t, func(t *testing.T) { simulate(t, random, c.hosts, c.groups, c.rounds) })
		})
	}
}

// reads returns how often the hosts have read the leaders' rows.
func (s *sim) reads() (n int) {
	for _, db := range s.dbs {
		db.mu.Lock()
		n += db.reads
		db.mu.Unlock()
	}
	return n
}

func simulate(t *testing.T, random *lockedRand, hosts, groups, rounds int) {
	t.Helper()
	s := &sim{t: t, random: random, hosts: make(map[string]*simHost), served: make(map[string]http.Handler)}
	for range groups {
		s.dbs = append(s.dbs, &simDB{random: random, rows: make(map[string][]byte)})
	}
	defer s.end()
	s.start() // leads all groups
	s.startAll(hosts - 1)
	vacant := make(map[*simDB]time.Duration)
	s.awaitBalance(vacant)
	orphans, came := 0, 0
	for range rounds {
		s.watch(time.Duration(2+random.intN(6))*time.Second, vacant)
		counts, _ := s.leads()
		live := s.live()
		slices.SortStableFunc(live, func(a, b *simHost) int { return counts[b] - counts[a] })
		if len(live) > 1 {
			dies := live[random.intN(min(len(live), groups))] // it leads, if enough hosts do
			orphans += counts[dies]
			s.die(dies)
		}
		if random.intN(2) == 0 || len(live) <= 2 {
			came++
			s.closes.Go(s.start)
		}
	}
	s.awaitBalance(vacant)
	s.watch(10*time.Second, vacant) // counts that are out of date may still cause a move
	moves := int(s.moves.Load())
	share := (groups + hosts - 1) / hosts
	most := groups + orphans + came*(share+1)
	before := s.reads()
	s.watch(30*time.Second, vacant)
	reads := s.reads() - before
	t.Logf("%d moves, at most %d; %d groups of dead hosts; then %d reads of the leader's row per group and second",
		moves, most, orphans, reads/groups/30)
	// Without looks that are spread, each host reads the rows twice in the time of a lease.
	const readsMost = 70
	if reads/groups/30 > readsMost {
		t.Errorf("%d reads of the leader's row per group and second, want at most %d", reads/groups/30, readsMost)
	}
	if moves > most || moves == 0 {
		t.Errorf("%d moves, want 1 to %d", moves, most)
	}
	if later := int(s.moves.Load()); later != moves || !s.balanced() {
		t.Errorf("%d moves after the groups were spread", later-moves)
	}
}

// awaitBalance lets time pass until the groups are spread. Each move takes up to 7.5 s, and a
// host with too many groups makes one at a time.
func (s *sim) awaitBalance(vacant map[*simDB]time.Duration) {
	for waited := 0; !s.balanced(); waited++ {
		if s.watch(time.Second, vacant); waited > 10*len(s.dbs) {
			counts, sum := s.leads()
			s.t.Fatalf("not balanced: %d groups are led, by host %v", sum, counts)
		}
	}
}

// end closes all hosts.
func (s *sim) end() {
	for _, h := range s.live() {
		s.closes.Go(func() { _ = h.groups.Load().Close() })
	}
	s.closes.Wait()
}
