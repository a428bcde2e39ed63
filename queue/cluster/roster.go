package cluster

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
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

	address string    // of the contact
	until   time.Time // when the leader forgets it
}

// roster has the nodes that the leader knows: those that have enrolled, and itself. It is
// safe for concurrent use.
type roster struct {
	own member

	mu    sync.Mutex // guards nodes
	nodes map[string]member
}

func newRoster(own member, address string) *roster {
	own.address = address
	return &roster{own: own, nodes: make(map[string]member)}
}

// add enrolls a node until enrolledFor from now.
func (r *roster) add(m member, now time.Time) error {
	c, err := parseContact(m.Contact)
	if err != nil {
		return fmt.Errorf("%w: node %.100q: %w", queue.ErrInvalid, m.Name, err)
	}
	m.address, m.until = c.address, now.Add(enrolledFor)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forget(now)
	if _, known := r.nodes[m.Name]; !known && len(r.nodes) >= rosterMost {
		return fmt.Errorf("%w: the leader knows %d nodes, which is the limit", queue.ErrFull, rosterMost)
	}
	r.nodes[m.Name] = m
	return nil
}

// count returns the number of nodes.
func (r *roster) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.nodes) + 1
}

// remove removes a node that closes, unless another process has its name.
func (r *roster) remove(m member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes[m.Name].Contact == m.Contact {
		delete(r.nodes, m.Name)
	}
}

// forget removes the nodes that no longer enroll. The caller must hold mu.
func (r *roster) forget(now time.Time) {
	for name, m := range r.nodes {
		if m.until.Before(now) {
			delete(r.nodes, name)
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

// of returns the nodes of a host, by name.
func (r *roster) of(host string, now time.Time) []member {
	return slices.DeleteFunc(r.all(now), func(m member) bool { return hostOf(m.Name) != host })
}

// least returns the other nodes that lead the fewest groups, by name.
func (r *roster) least(now time.Time) (found []member) {
	for _, m := range r.all(now) {
		switch {
		case m.Name == r.own.Name || len(found) > 0 && m.Leads > found[0].Leads:
		case len(found) > 0 && m.Leads == found[0].Leads:
			found = append(found, m)
		default:
			found = []member{m}
		}
	}
	return found
}

// list returns the names and addresses of all nodes, by name.
func (r *roster) list(now time.Time) (nodes []queue.Node) {
	for _, m := range r.all(now) {
		nodes = append(nodes, queue.Node{Name: m.Name, Address: m.address})
	}
	return nodes
}

// hostOf returns the host of a node that is named host:pid. Another name is returned as it is.
func hostOf(name string) string {
	if at := strings.LastIndexByte(name, ':'); at >= 0 {
		return name[:at]
	}
	return name
}

// ServeHTTP answers a GET with the nodes of a host. A POST enrolls a node, and a DELETE
// removes it.
func (r *roster) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	found := []member{}
	if q.Method == http.MethodGet {
		found = r.of(q.URL.Query().Get(hostQuery), clock.Now())
	} else if err := r.change(w, q); err != nil {
		refuse(w, err)
		return
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
		r.remove(m)
		return nil
	}
	return r.add(m, clock.Now())
}
