package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// The paths at which a node answers others, besides those of the calls of a store.
const (
	rosterPath = "/nodes" // at the leader: a POST or DELETE of a member, or a GET with a host
	hostQuery  = "host"
	knownField = "Stint-Nodes" // of its answers: the number of nodes
	nodePath   = "/node"       // before the paths of [Config.Handler]
	leadPath   = "/lead"       // at a node of a group: a POST lets it lead; see [seats]
	leadsQuery = "leads"
)

// Peer is a node of the cluster, to send requests to. It is safe for concurrent use.
type Peer struct {
	Name    string // see [Config.Name]
	Address string // host:port

	at *target
}

// RoundTrip sends a request to [Config.Handler] of the node, whatever the host of its URL. It
// is an [http.RoundTripper]. The node is verified by its certificate, and a host that does
// not answer is given up after some seconds.
func (p *Peer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Path = nodePath + r.URL.Path
	return p.at.RoundTrip(r)
}

// Name returns the name of this node.
func (n *Node) Name() string { return n.cfg.Name }

// Peers returns the nodes of the host of a node that is named host:pid, that node first and
// the others by name; of another name, that node only. This node may be among them. A node
// is known some milliseconds after it has been opened or the leader has changed, and for
// some seconds after it has gone. The error wraps [queue.ErrUnavailable] if the leader does
// not answer.
func (n *Node) Peers(ctx context.Context, name string) ([]*Peer, error) {
	found, err := n.membersOf(ctx, hostOf(name))
	if err != nil {
		return nil, fmt.Errorf("%w: the nodes of host %s: %w", queue.ErrUnavailable, hostOf(name), err)
	}
	var peers []*Peer
	for _, m := range found {
		c, err := parseContact(m.Contact)
		if err != nil {
			return nil, fmt.Errorf("%w: node %s: %w", queue.ErrUnavailable, m.Name, err)
		}
		peers = append(peers, &Peer{m.Name, c.address, n.targets.of(n, m.Contact, c)})
	}
	slices.SortStableFunc(peers, func(a, b *Peer) int {
		switch {
		case a.Name == name && b.Name != name:
			return -1
		case b.Name == name && a.Name != name:
			return 1
		}
		return 0
	})
	return peers, nil
}

// membersOf returns the nodes of a host, as the leader knows them.
func (n *Node) membersOf(ctx context.Context, host string) ([]member, error) {
	if v := n.current.view(); v.leads() {
		return v.roster.of(host, clock.Now()), nil
	}
	return n.askLeader(ctx, http.MethodGet, url.Values{hostQuery: {host}}, nil)
}

// self is this node for the leader.
func (n *Node) self() member {
	share := n.cfg.table.Share(n.cfg.group)
	return member{Name: n.cfg.Name, Contact: n.own.String(), Leads: n.current.seats.load(), Share: &share}
}

// enroll makes this node known to each leader, until the node is closed.
func (n *Node) enroll() {
	var e enrollment
	for n.current.life.Err() == nil {
		v := n.current.view()
		if v != e.of {
			e = enrollment{of: v}
		}
		if v.leads() {
			e.reachSelf(n)
		} else if v.at != nil {
			e.askLeader(n)
		}
		sleep(v.life, enrollEvery)
	}
}

// enrollment is what has come of the calls to the leader of a view. Errors are logged, because
// no other node can lead while the lease of a leader lasts that the others do not reach.
type enrollment struct {
	of       *view
	answered bool // the leader has answered
	failed   bool // the last call has failed
}

// reachSelf calls this node, which leads, at the address that the others were given, until it has
// answered.
func (e *enrollment) reachSelf(n *Node) {
	if e.answered {
		return
	}
	at := n.target(n.own, "")
	defer at.transport.CloseIdleConnections()
	_, err := n.ask(e.of.life, at, http.MethodGet, url.Values{hostQuery: {n.cfg.Name}}, nil)
	if e.answered = err == nil; !e.answered && e.of.life.Err() == nil {
		n.cfg.Logger.Warn("this node leads, and does not reach itself at its address: if the others do not reach it "+
			"either, correct its --node-address, or open its port",
			slog.String("address", n.own.address), slog.Any("error", err))
	}
}

// askLeader enrolls this node with the leader.
func (e *enrollment) askLeader(n *Node) {
	self := n.self()
	led, err := n.askLeader(e.of.life, http.MethodPost, nil, self)
	switch {
	case e.of.life.Err() != nil:
	case err != nil && e.failed: // a leader that has gone is replaced before
		n.cfg.Logger.Warn("the node that leads does not answer this one: if that goes on, correct its --node-address, or "+
			"open its port", slog.String("leader", e.of.leader.Name), slog.Any("error", err))
	case err != nil || e.answered || len(led) == 0 || led[0].Share == nil:
	case self.Share.Equal(*led[0].Share):
		warnStores(n.cfg.Logger, led[0].Name, *led[0].Share, *self.Share)
	default:
		n.cfg.Logger.Warn("this node has other groups than the one that leads, and tasks are refused that the two would put "+
			"into different groups: start all processes with the same groups", slog.String("leader", led[0].Name),
			slog.String("its_group_has", led[0].Share.String()), slog.String("the_group_here_has", self.Share.String()))
	}
	e.failed, e.answered = err != nil, e.answered || err == nil
}

// leave removes this node from those that the leader knows, if the leader answers soon.
func (n *Node) leave() {
	if v := n.current.view(); v.at == nil || v.leads() {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), answersWithin)
	defer stop()
	_, _ = n.askLeader(ctx, http.MethodDelete, nil, n.self()) // otherwise the leader forgets it later
}

// askLeader sends a message about nodes to the leader, and returns the nodes of its answer.
func (n *Node) askLeader(ctx context.Context, method string, q url.Values, about any) ([]member, error) {
	return n.ask(ctx, toLeader{n.current}, method, q, about)
}

// ask is askLeader over given connections.
func (n *Node) ask(
	ctx context.Context, over http.RoundTripper, method string, q url.Values, about any,
) ([]member, error) {
	body, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, enrolledFor-enrollEvery)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, method, "http://leader"+rosterPath+"?"+q.Encode(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set(wire.Client, "cluster")
	res, err := over.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read completely, or useless
	text, err := io.ReadAll(io.LimitReader(res.Body, rosterBytes))
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the leader answers %q: it may be of an older version", res.Status)
	}
	if known, err := strconv.Atoi(res.Header.Get(knownField)); err == nil {
		n.current.lookout.answered(known)
	}
	var found []member
	return found, json.Unmarshal(text, &found)
}

// answerNode answers a request of another node that is no call of a store.
func (n *Node) answerNode(w http.ResponseWriter, r *http.Request) {
	v := n.current.view()
	switch path, own := strings.CutPrefix(r.URL.Path, nodePath+"/"); {
	case !n.authorized(r):
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == leadPath:
		n.answerInvitation(w, r)
	case own && n.cfg.Handler != nil:
		r.URL.Path = "/" + path
		n.cfg.Handler.ServeHTTP(w, r)
	case r.URL.Path == rosterPath && v.leads():
		v.roster.ServeHTTP(w, r)
	case r.URL.Path == rosterPath:
		n.refuseAsLeader(w)
	default:
		refuse(w, fmt.Errorf("%w: node %s does not answer at %.200q", queue.ErrNotFound, n.cfg.Name, r.URL.Path))
	}
}

// isNodePath reports whether a request is no call of a store.
func isNodePath(path string) bool {
	return path == rosterPath || path == leadPath || strings.HasPrefix(path, nodePath+"/")
}

// authorized reports whether a request has the token of this node. It compares hashes of
// equal length in constant time, so that its duration reveals nothing about the token.
func (n *Node) authorized(r *http.Request) bool {
	got, want := sha256.Sum256([]byte(r.Header.Get("Authorization"))), sha256.Sum256([]byte("Bearer "+n.own.token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	p := wire.ProblemOf(err)
	w.Header().Set("Content-Type", wire.ProblemJSON)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the caller has gone if it fails
}

// targets keeps the connections to peers. The zero value is ready to use, and safe for
// concurrent use.
type targets struct {
	mu sync.Mutex // guards at
	at map[string]*target
}

// of returns the target of a contact, whose text is the key.
func (t *targets) of(n *Node, text string, c contact) *target {
	const most = 64 // hosts whose logs are read at a time; idle connections end by themselves
	t.mu.Lock()
	defer t.mu.Unlock()
	if found := t.at[text]; found != nil {
		return found
	}
	if t.at == nil || len(t.at) >= most {
		t.closeLocked()
		t.at = make(map[string]*target)
	}
	t.at[text] = n.target(c, "")
	return t.at[text]
}

func (t *targets) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closeLocked()
}

func (t *targets) closeLocked() {
	for _, at := range t.at {
		at.transport.CloseIdleConnections()
	}
}
