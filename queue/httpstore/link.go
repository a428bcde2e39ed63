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
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/internal/peer"
	"github.com/stintgo/stint/queue"
)

// link sends requests to a server. It knows how to reach the server and how long to try, and not what
// the calls mean. It is safe for concurrent use.
type link struct {
	cfg    Config
	name   string // of the server, for errors
	base   string // the prefix of all paths
	client http.Client
	own    *http.Transport // nil if the transport is the caller's

	unknownAt atomic.Pointer[time.Time] // when a server has last not known a packed call; nil: never

	// life ends with Close.
	life context.Context //nolint:containedctx // ends all calls
	end  context.CancelCauseFunc
}

func newLink(address string, cfg Config) (*link, error) {
	base, socket, err := parse(address)
	if err = errors.Join(err, cfg.validate()); err != nil {
		return nil, err
	}
	l := &link{cfg: cfg.withDefaults(), name: cmp.Or(cfg.Name, "the server at "+address), base: base}
	if socket != "" {
		l.cfg.Token = ""
	}
	l.client.Transport = cfg.Transport
	if cfg.Transport == nil {
		l.own = transport(socket, cfg.Users)
		l.client.Transport = l.own
	}
	l.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	l.life, l.end = context.WithCancelCause(context.Background())
	return l, nil
}

// parse returns the prefix of all paths of an address, and the path of the socket if it
// names one.
func parse(address string) (base, socket string, err error) {
	const longest = 107 // the longest address of a socket on Linux, in bytes
	if socket, ok := strings.CutPrefix(address, "unix:"); ok {
		if socket == "" || len(socket) > longest {
			return "", "", fmt.Errorf("%w: the path of a socket has 1 to %d bytes, not %d: %.200q",
				queue.ErrInvalid, longest, len(socket), socket)
		}
		return "http://localhost", socket, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", fmt.Errorf(`%w: %.200q is not the address of a server, which looks like `+
			`unix:stint-data/stint.sock or http://127.0.0.1:7117`, queue.ErrInvalid, address)
	}
	return strings.TrimSuffix(u.String(), "/"), "", nil
}

// transport returns a transport that keeps connections for concurrent calls, up to a
// number: opening a connection takes longer than most calls.
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

// bind returns a context that ends with ctx and with the store.
func (l *link) bind(ctx context.Context) (bound context.Context, release func()) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.life, func() { cancel(queue.ErrClosed) })
	if l.life.Err() != nil {
		cancel(queue.ErrClosed) // at once, not when that function has run
	}
	return bound, sync.OnceFunc(func() {
		stop()
		cancel(nil)
	})
}
