package httpstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/server"
)

// network is one within a bubble, with one server that can go away and come back.
type network struct {
	t    *testing.T
	rand *rand.Rand // cuts connections at random if it is not nil

	mu    sync.Mutex
	l     *listener // nil while there is no server
	conns []net.Conn

	broken int // connections that chance has cut
}

// up starts a server.
func (n *network) up(h http.Handler) *http.Server {
	l := &listener{conns: make(chan net.Conn), closed: make(chan struct{})}
	hs := &http.Server{Handler: h} //nolint:gosec // its clients are this test
	n.mu.Lock()
	n.l = l
	n.mu.Unlock()
	go func() { _ = hs.Serve(l) }()
	return hs
}

// down has the server be gone, as when its process is killed: all its connections
// break, whatever they were about.
func (n *network) down() {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = n.l.Close()
	n.l = nil
	for _, c := range n.conns {
		_ = c.Close()
	}
	n.conns = nil
}

var errRefused = errors.New("connection refused")

// dial connects to the server.
func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.mu.Lock()
	l := n.l
	n.mu.Unlock()
	if l == nil {
		return nil, errRefused
	}
	client, served := net.Pipe()
	if n.rand != nil {
		n.mu.Lock()
		client = &fragile{Conn: client, n: n, left: 1 + n.rand.IntN(1+n.rand.IntN(400_000))}
		n.mu.Unlock()
	}
	select {
	case l.conns <- served:
	case <-l.closed:
		return nil, errRefused
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns = append(n.conns, client, served)
	return client, nil
}

// open opens the store of the server.
func (n *network) open(cfg httpstore.Config) *httpstore.Store {
	n.t.Helper()
	transport := &http.Transport{DialContext: n.dial, MaxIdleConnsPerHost: 64}
	n.t.Cleanup(transport.CloseIdleConnections)
	cfg.Transport = loser{transport, n}
	return open(n.t, "http://localhost", cfg)
}

// start serves a store until the test ends.
func (n *network) start(store queue.Store, cfg server.Config, around ...func(http.Handler) http.Handler) (stop func()) {
	s := server.New(store, cfg)
	hs := n.up(wrapped(s, around))
	stop = sync.OnceFunc(func() {
		n.down()
		s.Close()
		_ = hs.Close()
	})
	n.t.Cleanup(stop)
	return stop
}

// listener accepts what is dialled.
type listener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *listener) Addr() net.Addr { return &net.UnixAddr{Name: "server", Net: "unix"} }

// fragile is a connection that breaks after a number of bytes, be they of a call
// or of its answer.
type fragile struct {
	net.Conn
	n    *network
	mu   sync.Mutex
	left int
}

func (f *fragile) Read(p []byte) (int, error)  { return f.pass(p, f.Conn.Read) }
func (f *fragile) Write(p []byte) (int, error) { return f.pass(p, f.Conn.Write) }

var errBroken = errors.New("the connection is broken")

func (f *fragile) pass(p []byte, do func([]byte) (int, error)) (int, error) {
	f.mu.Lock()
	most := min(len(p), f.left)
	f.mu.Unlock()
	if most <= 0 {
		return 0, errBroken
	}
	n, err := do(p[:most])
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left -= n; f.left <= 0 {
		f.cut()
		return n, errBroken
	}
	return n, err
}

func (f *fragile) cut() {
	_ = f.Close()
	f.n.mu.Lock()
	defer f.n.mu.Unlock()
	f.n.broken++
}

// loser loses whole answers at random, after the server has given them: small
// ones too, which a number of bytes seldom ends in.
type loser struct {
	http.RoundTripper
	n *network
}

func (l loser) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := l.RoundTripper.RoundTrip(r)
	if err != nil || l.n.rand == nil {
		return res, err
	}
	l.n.mu.Lock()
	defer l.n.mu.Unlock()
	if l.n.rand.IntN(5) > 0 {
		return res, nil
	}
	l.n.broken++
	return nil, errors.Join(errBroken, res.Body.Close())
}
