package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"

	"github.com/stintgo/stint/queue"
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
	r.URL.RawPath, r.URL.Path = nodePath+cmp.Or(r.URL.EscapedPath(), "/"), nodePath+cmp.Or(r.URL.Path, "/")
	return p.at.RoundTrip(r)
}

// Name returns the name of this node.
func (n *Node) Name() string { return n.self.name }

// Peers returns the nodes of the host of a node that is named host:pid or host:pid-random, that
// node first and the others by name; of another name, that node only. This node may be among
// them. A node is known some milliseconds after it has been opened or the leader has changed,
// and for some seconds after it has gone. The error wraps [queue.ErrUnavailable] if the leader
// does not answer.
func (n *Node) Peers(ctx context.Context, name string) ([]*Peer, error) {
	found, err := n.members.of(ctx, hostOf(name))
	if err != nil {
		return nil, fmt.Errorf("%w: the nodes of host %s: %w", queue.ErrUnavailable, hostOf(name), err)
	}
	var peers []*Peer
	for _, m := range found {
		c, err := parseContact(m.Contact)
		if err != nil {
			return nil, fmt.Errorf("%w: node %s: %w", queue.ErrUnavailable, m.Name, err)
		}
		peers = append(peers, &Peer{m.Name, c.address, n.targets.of(m.Contact, c)})
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

// targets keeps the connections to peers. It is safe for concurrent use.
type targets struct {
	dialer dialer

	mu sync.Mutex // guards at
	at map[string]*target
}

// of returns the target of a contact, whose text is the key.
func (t *targets) of(text string, c contact) *target {
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
	t.at[text] = t.dialer.target(c, "")
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
