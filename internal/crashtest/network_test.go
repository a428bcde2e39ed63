//go:build linux

package crashtest_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/freeport"
	"github.com/stintgo/stint/internal/netfault"
	"github.com/stintgo/stint/internal/seeded"
)

// network is the connections of a node: all of them pass a proxy.
type network struct {
	url      string // of the database server, by the proxy
	listen   string // where the node answers the others
	database *netfault.Proxy
	others   *netfault.Proxy // to listen
}

// newNetwork returns the connections of a node to a database.
func newNetwork(t *testing.T, dsn string) *network {
	t.Helper()
	n := new(network)
	to, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	n.database, err = netfault.New(to.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeProxy(t, n.database) })
	to.Host = n.database.Addr()
	n.url = to.String()
	if n.listen, err = freeport.Address(); err != nil {
		t.Fatal(err)
	}
	if n.others, err = netfault.New(n.listen); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeProxy(t, n.others) })
	return n
}

func closeProxy(t *testing.T, p *netfault.Proxy) {
	t.Helper()
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// TestC11_DisturbedConnections delays, splits, stalls, deadens and breaks the connections of
// three nodes to the database and to each other at random, while tasks are submitted at all
// nodes. Afterwards it checks what TestC6_KilledProcesses checks.
func TestC11_DisturbedConnections(t *testing.T) {
	for name, start := range map[string]func(*testing.T) database{"PostgreSQL": postgres, "Redis": redisServer} {
		t.Run(name, func(t *testing.T) { disturb(t, start(t)) })
	}
}

func disturb(t *testing.T, db database) {
	t.Helper()
	t.Cleanup(db.Stop)
	const places = 3
	rnd, dir := seeded.Rand(t), t.TempDir()
	f := &fleet{dir: dir, url: db.DSN, lease: leaderLease}
	var sockets []string
	for place := range places {
		f.networks = append(f.networks, newNetwork(t, db.DSN))
		sockets = append(sockets, filepath.Join(dir, fmt.Sprintf("%s-%d", isNode, place)))
	}
	startFleet(t, f, slices.Repeat([]string{isNode}, places)...)
	store := configured(t, sockets[0])
	l, struck, n := newLedger(), make(map[string]int), 0
	harass(t, f, func() bool { n++; return n <= disturbances }, sockets, l, rnd, func(f *fleet, rnd *rand.Rand) {
		f.t.Helper()
		struck[strikeNetwork(f, rnd)]++
	})
	for _, n := range f.networks {
		n.database.Set(netfault.Fault{})
		n.others.Set(netfault.Fault{})
	}
	began := time.Now()
	drain(t, store, 0)
	t.Logf("the connections were struck %v; what was left took %s", struck, time.Since(began).Round(time.Millisecond))
	allSlots(t, store, dir, l)
	limit(t, store)
	f.end()
	checkStore(t, f, lastLeader(t, db.DSN), dir, l)
}

// strikeNetwork changes the faults of the connections of a node to the database or from the
// others, and returns what it has done.
func strikeNetwork(f *fleet, rnd *rand.Rand) string {
	n := f.networks[rnd.IntN(len(f.networks))]
	p := n.database
	if rnd.IntN(2) == 0 {
		p = n.others
	}
	switch rnd.IntN(16) {
	case 0, 1:
		p.Set(netfault.Fault{Stall: true})
		return "stalled"
	case 2:
		p.Set(netfault.Fault{Refuse: true})
		p.Cut()
		return "refused"
	case 3, 4:
		p.Deaden()
		return "dead"
	case 5, 6:
		p.Cut()
		return "cut"
	case 7, 8, 9:
		p.Set(netfault.Fault{Delay: time.Duration(rnd.Int64N(int64(20 * time.Millisecond))), Piece: 1 + rnd.IntN(1000)})
		return "slow"
	}
	p.Set(netfault.Fault{})
	return "whole"
}
