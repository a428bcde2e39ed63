// Package httpstore is a client of a store in another process: a [queue.Store] whose
// calls go over HTTP to a server of package server, through a Unix socket or by TCP.
//
//	store, err := httpstore.Open("unix:stint-data/stint.sock", httpstore.Config{})
//	...
//	defer store.Close()
//	q := queue.New(store, queue.Config{})
//
// # Time
//
// The server's clock counts. If the caller's clock differs by a second or more, the
// server converts the times of calls and answers, see package server. Calls without a
// time of their own, such as Find, use the clock of this process.
//
// # While no server answers
//
// A call without an answer is repeated for [Config.Patience], so that a quick restart of
// the server goes unnoticed; then its error wraps [queue.ErrUnavailable]. A repeated call
// takes effect once: the server remembers the last claims of each worker and the last
// commands as long as it runs. A claim that remains without an answer is repeated by the
// worker's next claim of the same queue, however long the server was away: the worker
// then has the tasks of the first claim or, if too much time has passed, they are
// released. Only if the answer of a claim is lost together with the process of the server
// or of the worker, its tasks have no worker until their leases expire.
//
// Watch ends with [queue.ErrUnavailable] when its connection breaks; events until the
// next call of Watch are lost. Listeners continue, and are signalled when the server is
// back.
package httpstore

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"github.com/stintgo/stint/queue"
)

// Config configures a store. The zero value is a good default.
type Config struct {
	// Patience is how long a call is repeated while no server answers, or the server
	// answers that it is not available; 0 means 1 s. The end of the call's context ends
	// it in any case.
	Patience time.Duration
	// Timeout is how long a server may take to answer a call; 0 means 30 s. The result
	// of a call is unknown after that.
	Timeout time.Duration
	// WatchBuffer is the number of events that a watcher may be behind; 0 means 1024.
	WatchBuffer int
	// Token is sent with each call to an http: or https: address; it must be the
	// server's Config.Token. It is never sent to a Unix socket.
	Token string
	// Users are the user IDs whose servers are trusted at a Unix socket, besides that of
	// this process and root. No call is sent to a process of another user. Linux; on
	// other systems the mode of the socket's directory decides.
	Users []int
	// Name is how errors call the server; "" is "the server at" and its address.
	Name string
	// Transport makes the requests, for clients that need certificates, a header or a
	// proxy. The caller closes its connections. Nil is a transport for the URL.
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
	*link
	listeners  *listeners
	unanswered unanswered
}

var _ queue.Store = (*Store)(nil)

// Open returns the store of a server: "unix:" and the path of its socket, or the server's
// "http:" or "https:" address. The first call connects, so the server may be started
// later.
func Open(address string, cfg Config) (*Store, error) {
	l, err := newLink(address, cfg)
	if err != nil {
		return nil, err
	}
	return &Store{link: l, listeners: newListeners(l)}, nil
}

// Close ends all calls with [queue.ErrClosed]. The server and the leases of this
// process's workers are not affected.
func (s *Store) Close() error {
	s.end(queue.ErrClosed)
	s.listeners.close()
	if s.own != nil {
		s.own.CloseIdleConnections()
	}
	return nil
}
