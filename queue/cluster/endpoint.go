package cluster

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

// endpoint answers the other nodes, and this one, at the address of the contact: the calls of a
// store, of membership and of permits while this node leads, invitations and the requests of peers
// at any time. Whether the node leads is in the present view. It is safe for concurrent use.
type endpoint struct {
	self    identity
	state   *nodeState
	peers   http.Handler // answers the requests of peers; nil answers none
	server  http.Server
	serving sync.WaitGroup
}

// newEndpoint returns an endpoint that does not serve yet.
func newEndpoint(self identity, state *nodeState, cfg *Config) *endpoint {
	e := &endpoint{self: self, state: state, peers: cfg.Handler}
	var h http.Handler = http.HandlerFunc(e.answer)
	if cfg.around != nil {
		h = cfg.around(h)
	}
	const headers, idle, headersMax = 10 * time.Second, 2 * time.Minute, 64 << 10
	e.server = http.Server{
		Handler: h, TLSConfig: self.contact.tls(), ReadHeaderTimeout: headers, IdleTimeout: idle, MaxHeaderBytes: headersMax,
		HTTP2:    pings(),
		ErrorLog: slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug), // such as port scans
	}
	return e
}

// serve serves the other nodes, over a network if it is not nil and else at a listener.
func (e *endpoint) serve(l net.Listener, over network) {
	if over != nil {
		over.Serve(e.self.contact.address, e.server.Handler)
		return
	}
	e.serving.Go(func() { _ = e.server.ServeTLS(l, "", "") })
}

// close waits for the calls in progress until ctx ends, and then ends the rest.
func (e *endpoint) close(ctx context.Context) error {
	_ = e.server.Shutdown(ctx)
	err := e.server.Close()
	e.serving.Wait()
	return err
}

// answer answers a call of another node.
func (e *endpoint) answer(w http.ResponseWriter, r *http.Request) {
	v := e.state.view()
	switch {
	case isNodePath(r.URL.Path):
		e.answerNode(w, r)
	case v.leads():
		v.term.front.ServeHTTP(w, r)
	default:
		e.refuseAsLeader(w)
	}
}

// isNodePath reports whether a path is for the node itself, not for its store.
func isNodePath(path string) bool {
	return path == permitsPath || path == rosterPath || path == leadPath || strings.HasPrefix(path, nodePath+"/")
}

// answerNode answers a request of another node that is for this node itself, not for its store.
func (e *endpoint) answerNode(w http.ResponseWriter, r *http.Request) {
	v := e.state.view()
	switch own := strings.HasPrefix(r.URL.Path, nodePath+"/"); {
	case !e.authorized(r):
		http.Error(w, "the request does not have the token of node "+e.self.name, http.StatusUnauthorized)
	case r.URL.Path == leadPath:
		e.answerInvitation(w, r)
	case own && e.peers != nil:
		http.StripPrefix(nodePath, e.peers).ServeHTTP(w, r)
	case own:
		refuse(w, fmt.Errorf("%w: node %s does not answer at %.200q", queue.ErrNotFound, e.self.name, r.URL.Path))
	case !v.leads():
		e.refuseAsLeader(w)
	case r.URL.Path == rosterPath:
		v.term.roster.ServeHTTP(w, r)
	default:
		v.term.hub.ServeHTTP(w, r)
	}
}

// answerInvitation answers a node that hands its group over.
func (e *endpoint) answerInvitation(w http.ResponseWriter, r *http.Request) {
	leads, err := strconv.Atoi(r.URL.Query().Get(leadsQuery))
	now := clock.Now()
	switch {
	case err != nil:
		refuse(w, fmt.Errorf("%w: %s: %w", queue.ErrInvalid, leadsQuery, err))
	case e.state.life.Err() != nil || !e.state.ledGroups.accept(leads, now):
		w.WriteHeader(http.StatusConflict)
	default:
		e.state.timer.invite()
	}
}

// refuseAsLeader answers a request that only the leader answers.
func (e *endpoint) refuseAsLeader(w http.ResponseWriter) {
	refuse(w, fmt.Errorf("%w: the node %s, which was called as the leader, does not lead: %w",
		queue.ErrUnavailable, e.self.name, errNoLeader))
}

// authorized reports whether a request has the token of this node. It compares hashes of
// equal length in constant time, so that its duration reveals nothing about the token.
func (e *endpoint) authorized(r *http.Request) bool {
	got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
	want := sha256.Sum256([]byte("Bearer " + e.self.contact.token))
	return subtle.ConstantTimeCompare(got[:], want[:]) == 1
}
