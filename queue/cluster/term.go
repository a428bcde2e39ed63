package cluster

import (
	"log/slog"
	"sync"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/router"
	"github.com/stintgo/stint/server"
)

// itemMax limits a task in a call of another node, in bytes: the store has its own limit,
// which is the same for the leader and its followers.
const itemMax = 48 << 20

// clocksAgree is the difference between the clocks of this host and of the database server
// from which on a node that leads makes its own calls as its followers do: over a connection,
// with times converted.
const clocksAgree = time.Second

// term is one lead of a node: what it has while it leads, and no longer. It is safe for concurrent
// use.
type term struct {
	leader queue.Leader     // the node, and since when it leads
	opened Store            // as opened
	calls  queue.Store      // opened, with the checks and the names of the nodes
	now    func() time.Time // by the clock of the database server
	roster *roster          // of the nodes
	hub    *hub             // has the permits of all nodes
	front  *server.Server   // serves calls to the other nodes
	log    *slog.Logger

	differ sync.Once // is done when the clocks of the database server and of this host have been found to differ
}

// streamsOfNode is how many streams a leader expects of a node on average: the signals of its queues, and
// events.
const streamsOfNode = 8

// newTerm returns the lead of a node that has opened a store. leads is the number of groups that its
// process leads already, lease that of permits.
func newTerm(opened Store, self *identity, leads int, lease time.Duration, log *slog.Logger) *term {
	t := &term{
		leader: queue.Leader{Name: self.name, Since: opened.Now(), Contact: self.contact.String()},
		opened: opened, now: opened.Now,
		roster: newRoster(self.member(leads), self.contact.address, log), hub: newHub(lease, opened), log: log,
	}
	t.calls = listed{
		opened: opened, nodes: t.roster,
		Store: router.OnlyGroup(checked{opened}, self.table, self.group, t.roster.disputed),
		lead:  queue.Lead{Name: t.leader.Name, Since: t.leader.Since}, now: t.now,
	}
	t.front = server.New(t.calls, server.Config{
		Hosts: []string{self.contact.host()}, Token: self.contact.token, MaxItem: itemMax, Logger: log, Clock: opened.Now,
		MaxStreams: streamsOfNode * rosterMost,
	})
	return t
}

// agrees reports whether the clock of this host, by which the time is now, agrees with that of the
// database server. The first difference is logged.
func (t *term) agrees(now time.Time) bool {
	off := now.Sub(t.now())
	if off.Abs() < clocksAgree {
		return true
	}
	t.differ.Do(func() {
		t.log.Warn("the clock of this host differs from that of the database server, which decides: set the clocks",
			slog.Duration("ahead", off))
	})
	return false
}
