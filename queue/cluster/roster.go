package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/router"
)

const (
	// enrollEvery is how often a node enrolls with the leader.
	enrollEvery = 3 * time.Second
	// enrolledFor is how long the leader knows a node that does not enroll again.
	enrolledFor = 4 * enrollEvery
	// rosterMost limits the nodes that a leader knows.
	rosterMost = 10_000
	// rosterBytes limits a message about nodes, in bytes.
	rosterBytes = 1 << 20
)

// member is a node as the leader knows it. The contact has the token of the node.
type member struct {
	Name    string `json:"name"`
	Contact string `json:"contact"`
	Leads   int    `json:"leads,omitempty"` // the groups that its process leads
	// Share is what the table of its process says about the group; nil if its version does not
	// send it.
	Share *router.Share `json:"share,omitempty"`

	address string    // of the contact
	until   time.Time // when the leader forgets it
}

// roster has the nodes that the leader knows: those that have enrolled, and itself. It is
// safe for concurrent use.
type roster struct {
	own member
	log *slog.Logger

	mu     sync.Mutex // guards the fields below
	nodes  map[string]member
	closed map[string]time.Time // until when calls of nodes that have closed may still arrive, by contact
	differ int                  // nodes whose share is not that of own
}

func newRoster(own member, address string, log *slog.Logger) *roster {
	own.address = address
	return &roster{own: own, log: log, nodes: make(map[string]member), closed: make(map[string]time.Time)}
}

// differs reports whether a node has another table of groups than this one.
func (r *roster) differs(m member) bool { return m.Share != nil && !m.Share.Equal(*r.own.Share) }

// add enrolls a node until enrolledFor from now, unless it has closed: its last calls may be handled in
// any order.
func (r *roster) add(m member, now time.Time) error {
	c, err := parseContact(m.Contact)
	if err != nil {
		return fmt.Errorf("%w: node %.100q: %w", queue.ErrInvalid, m.Name, err)
	}
	m.address, m.until = c.address, now.Add(enrolledFor)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	if !r.closed[m.Contact].IsZero() {
		return nil
	}
	before, known := r.nodes[m.Name]
	if !known && len(r.nodes) >= rosterMost {
		return fmt.Errorf("%w: the leader knows %d nodes, which is the limit", queue.ErrFull, rosterMost)
	}
	r.drop(m.Name)
	r.nodes[m.Name] = m
	if before.Contact != m.Contact && m.Share != nil {
		warnStores(r.log, m.Name, *m.Share, *r.own.Share)
	}
	if !r.differs(m) {
		return nil
	}
	r.differ++
	if before.Contact != m.Contact {
		r.log.Warn("a node has other groups than this one, and tasks are refused that they would put into different groups: "+
			"start all processes with the same groups", slog.String("node", m.Name),
			slog.String("its_group_has", m.Share.String()), slog.String("the_group_here_has", r.own.Share.String()))
	}
	return nil
}

// warnStores logs that a node and this one may have different stores for a group.
func warnStores(log *slog.Logger, node string, its, own router.Share) {
	if name := own.Elsewhere(its); name != "" {
		log.Warn("a node has another store for a group than this one, so each may lead it, with tasks and limits of its "+
			"own: start all processes with the same stores, under the same names", slog.String("node", node),
			slog.String("of_group", name), slog.String("its_store", its.Stores[name]),
			slog.String("the_store_here", own.Stores[name]))
	}
}

// drop removes a node. The caller must hold mu.
func (r *roster) drop(name string) {
	if m, ok := r.nodes[name]; ok && r.differs(m) {
		r.differ--
	}
	delete(r.nodes, name)
}

// disputed returns the first node by whose table another group names a queue, "" if there is
// none.
func (r *roster) disputed(name string) (node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.differ == 0 {
		return ""
	}
	r.forget(clock.Now())
	for _, m := range r.nodes {
		if r.differs(m) && m.Share.NamedElsewhere(name) && (node == "" || m.Name < node) {
			node = m.Name
		}
	}
	return node
}

// count returns the number of nodes.
func (r *roster) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.nodes) + 1
}

// remove removes a node that closes, unless another process has its name.
func (r *roster) remove(m member, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	r.closed[m.Contact] = now.Add(enrolledFor)
	if r.nodes[m.Name].Contact == m.Contact {
		r.drop(m.Name)
	}
}

// forget removes the nodes that no longer enroll, and those whose calls have ended. The caller must
// hold mu.
func (r *roster) forget(now time.Time) {
	maps.DeleteFunc(r.closed, func(_ string, until time.Time) bool { return until.Before(now) })
	for name, m := range r.nodes {
		if m.until.Before(now) {
			r.drop(name)
		}
	}
}

// all returns all nodes, by name.
func (r *roster) all(now time.Time) []member {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	found := []member{r.own}
	for name, m := range r.nodes {
		if name != r.own.Name {
			found = append(found, m)
		}
	}
	slices.SortFunc(found, func(a, b member) int { return cmp.Compare(a.Name, b.Name) })
	return found
}

// of returns the nodes of a host, by name, without their shares, which the caller does not need.
func (r *roster) of(host string, now time.Time) []member {
	found := slices.DeleteFunc(r.all(now), func(m member) bool { return hostOf(m.Name) != host })
	for i := range found {
		found[i].Share = nil
	}
	return found
}

// least returns the other nodes that lead the fewest groups, by name, of those that are not
// omitted.
func (r *roster) least(now time.Time, omit func(name string) bool) (found []member) {
	for _, m := range r.all(now) {
		switch {
		case m.Name == r.own.Name || omit(m.Name) || len(found) > 0 && m.Leads > found[0].Leads:
		case len(found) > 0 && m.Leads == found[0].Leads:
			found = append(found, m)
		default:
			found = []member{m}
		}
	}
	return found
}

// list returns the names and addresses of all nodes, by name, and when they were seen by another clock:
// at is the time now by that.
func (r *roster) list(now, at time.Time) (nodes []queue.Node) {
	for _, m := range r.all(now) {
		seen := at
		if m.Name != r.own.Name {
			seen = at.Add(m.until.Add(-enrolledFor).Sub(now))
		}
		nodes = append(nodes, queue.Node{Name: m.Name, Address: m.address, Seen: seen.Round(0)})
	}
	return nodes
}

// hostOf returns the host of a node that is named host:pid or host:pid-random. It returns a name without a
// colon as it is.
func hostOf(name string) string {
	if at := strings.LastIndexByte(name, ':'); at >= 0 {
		return name[:at]
	}
	return name
}

// ServeHTTP answers a GET with the nodes of a host. A POST enrolls a node, and is answered with
// this one; a DELETE removes a node.
func (r *roster) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	found := []member{}
	if q.Method == http.MethodGet {
		found = r.of(q.URL.Query().Get(hostQuery), clock.Now())
	} else if err := r.change(w, q); err != nil {
		refuse(w, err)
		return
	} else if q.Method == http.MethodPost {
		found = append(found, member{Name: r.own.Name, Share: r.own.Share}) // the caller knows the contact
	}
	w.Header().Set("Content-Type", wire.JSON)
	w.Header().Set(knownField, strconv.Itoa(r.count()))
	_ = json.NewEncoder(w).Encode(found) // the caller has gone if it fails
}

// change enrolls or removes a node.
func (r *roster) change(w http.ResponseWriter, q *http.Request) error {
	var m member
	if err := json.NewDecoder(http.MaxBytesReader(w, q.Body, rosterBytes)).Decode(&m); err != nil {
		return fmt.Errorf("%w: %w", queue.ErrInvalid, err)
	}
	if q.Method == http.MethodDelete {
		r.remove(m, clock.Now())
		return nil
	}
	return r.add(m, clock.Now())
}
