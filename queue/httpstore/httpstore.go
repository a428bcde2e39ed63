// Package httpstore is a store in another process: a [queue.Store] whose calls go
// over HTTP to a server of package server, through a Unix socket or by TCP.
//
//	store, err := httpstore.Open("unix:stint-data/stint.sock", httpstore.Config{})
//	...
//	defer store.Close()
//	q := queue.New(store, queue.Config{})
//
// # Time
//
// The server's clock counts. If that of the caller differs by a second or more, the
// server converts the times of calls and answers, see package server. Calls that have
// no time of their own, such as Find, go by the clock of this process.
//
// # When the server is away
//
// A call that finds no server, or loses it, is made again for a short while, so
// that a restart of the server goes unnoticed if it is quick; then it answers
// [queue.ErrUnavailable]. Calls may be repeated, and this package repeats them
// so that they are done once: the server remembers the last claims of each worker
// and the last commands, as long as it lives. A claim that was not answered by
// then is asked for once more by the worker's next one of the same queue, however
// long the server was out of reach: what it has given the worker has, or, if too
// much time has passed, the store has back. Only a claim whose answer is lost
// together with the server's process, or with the worker's, leaves tasks behind
// that no worker runs until their leases end.
//
// Watch ends with [queue.ErrUnavailable] when its connection does: what happened
// until it is called again is not delivered. Listeners go on, and get a signal
// when the server is back.
package httpstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/peer"
	"github.com/stintgo/stint/queue"
)

// Config is how a store reaches its server. The zero value is a good default.
type Config struct {
	// Patience is how long a call is made again and again while there is no server,
	// or one that says that it is not available:
	// 1 s if it is 0. It ends with the context of the call in any case.
	Patience time.Duration
	// Timeout is how long a server may take to answer a call: 30 s if it is 0.
	// Whether the call was done is unknown then.
	Timeout time.Duration
	// WatchBuffer is how many events a watcher may be behind: 1024 if it is 0.
	WatchBuffer int
	// Token is sent with each call to an http: or https: address, as the server's
	// Config.Token demands it. It is never sent to a Unix socket.
	Token string
	// Users are the user IDs whose servers are trusted at a Unix socket, besides that of
	// this process and root. To the process of any other user nothing is sent. Linux;
	// on other systems the mode of the socket's directory decides.
	Users []int
	// Transport makes the requests, for clients that need certificates, a header or a
	// proxy; its connections are the caller's to close. Nil is one for the URL.
	Transport http.RoundTripper
}

func (c Config) withDefaults() Config {
	c.Patience = cmp.Or(c.Patience, time.Second)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.WatchBuffer = cmp.Or(c.WatchBuffer, 1024)
	return c
}

func (c Config) validate() error {
	if c.Patience < 0 || c.Timeout < 0 || c.WatchBuffer < 0 {
		return fmt.Errorf("%w: Patience is %s, Timeout %s and WatchBuffer %d; they are 0 for the default, or more",
			queue.ErrInvalid, c.Patience, c.Timeout, c.WatchBuffer)
	}
	return nil
}

// Store is a [queue.Store] behind a server. It is safe for concurrent use.
type Store struct {
	cfg    Config
	where  string // as the user has named it
	base   string // what paths are added to
	client http.Client
	own    *http.Transport // nil if it is the caller's

	listeners  *listeners
	unanswered unanswered

	// life ends with Close.
	life context.Context //nolint:containedctx // what calls are bound to besides their own
	end  context.CancelCauseFunc
}

var _ queue.Store = (*Store)(nil)

// Open returns the store of a server: "unix:" and the path of its socket, or the
// server's "http:" or "https:" address. It connects when something is asked of
// the store, so the server may be started later.
func Open(address string, cfg Config) (*Store, error) {
	base, socket, err := parse(address)
	if err = errors.Join(err, cfg.validate()); err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg.withDefaults(), where: address, base: base}
	if socket != "" {
		s.cfg.Token = ""
	}
	s.client.Transport = cfg.Transport
	if cfg.Transport == nil {
		s.own = transport(socket, cfg.Users)
		s.client.Transport = s.own
	}
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.life, s.end = context.WithCancelCause(context.Background())
	s.listeners = newListeners(s)
	return s, nil
}

// parse takes an address apart: what the paths of calls are added to, and the
// path of a socket if it is one.
func parse(address string) (base, socket string, err error) {
	const longest = 107 // bytes in a socket's address, on Linux
	if socket, ok := strings.CutPrefix(address, "unix:"); ok {
		if socket == "" || len(socket) > longest {
			return "", "", fmt.Errorf("%w: the path of a socket has 1 to %d bytes, not %d: %.200q",
				queue.ErrInvalid, longest, len(socket), socket)
		}
		return "http://localhost", socket, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", fmt.Errorf(`%w: %.200q is no address of a server, which looks like unix:stint-data/stint.sock or `+
			`http://127.0.0.1:7117`, queue.ErrInvalid, address)
	}
	return strings.TrimSuffix(u.String(), "/"), "", nil
}

// transport keeps a connection for each of the calls that are made at a time, up
// to a number: to open one takes longer than most calls.
func transport(socket string, users []int) *http.Transport {
	const connections = 128
	t := &http.Transport{
		MaxIdleConns: connections, MaxIdleConnsPerHost: connections, IdleConnTimeout: time.Minute,
		DisableCompression: true,
	}
	if socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, "unix", socket)
			if err != nil {
				return nil, err
			}
			if err := peer.Check(c, users); err != nil {
				return nil, errors.Join(err, c.Close())
			}
			return c, nil
		}
	}
	return t
}

// Close ends all calls with [queue.ErrClosed]. The server goes on, and so do
// leases that this process has.
func (s *Store) Close() error {
	s.end(queue.ErrClosed)
	s.listeners.close()
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
	return nil
}

// bind has a call end with the store as well as with its own context.
func (s *Store) bind(ctx context.Context) (bound context.Context, release func()) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(queue.ErrClosed) })
	if s.life.Err() != nil {
		cancel(queue.ErrClosed) // now, and not when that function has run
	}
	return bound, sync.OnceFunc(func() {
		stop()
		cancel(nil)
	})
}
