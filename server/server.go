// Package server lets other processes use the store that this one has open, over
// HTTP: each call of [queue.Store] is one request. Package queue/httpstore is the
// client, a [queue.Store] itself, so that a worker does not know the difference.
//
//	store, err := filestore.Open("stint-data", filestore.Config{})
//	...
//	l, err := net.Listen("unix", "stint.sock") // or "tcp", "127.0.0.1:7117"
//	...
//	s := server.New(store, server.Config{})
//	go worker.Run(ctx, ...)     // this process may use the store as well
//	err = s.Serve(ctx, l)       // until ctx ends, and at the same time on others, if need be
//	s.Close()                   // and then the store
//
// # Time
//
// The clock of the server counts. Each call says what time it is by the client's clock.
// If that differs by a second or more, the server converts the times of the call, such
// as RunAt and Deadline, to its own clock, and those of the answer to the client's. So
// a task that a client delays by ten minutes starts after ten minutes, whatever time
// either of them has. Schedules are times of day, and go by the clocks of the processes
// that submit their tasks.
//
// # Leases
//
// All who claim here are in other processes, so their leases outlive this one: a
// worker whose server is started again works on. Those in this process, who use the
// store itself, say themselves what they are.
//
// # What it keeps away
//
// A client may do everything. By a Unix socket [Server.Serve] lets in processes of its
// own user, of root and of [Config.Users]; on systems other than Linux, all who may
// open the socket. At a TCP address it lets in all who have [Config.Token], or all
// if there is none. On a TCP address the server answers only
// requests that name this machine, or a name of [Config.Hosts], as their host.
// It answers none that another site's page makes a browser send: every call has
// to name its program in the header Stint-Client, which no such page can set.
// Calls have a largest size, and clients a time in which to send them and to take
// the answers. The number of items in a call is bounded as well, and all calls that are
// sent and done at a time have at most twice the memory that the largest takes, 266 MiB
// unless [Config.MaxBody] says otherwise; further ones wait. An answer to a Claim or a
// Find has at most 1,000 tasks, and ends with the task with which it has 16 MiB of them.
package server

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stintgo/stint/csync"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
)

// Config is how a server works. The zero value is a good default.
type Config struct {
	// MaxBody is the largest call, in bytes: 64 MiB if it is 0. Payloads are a third
	// longer in a call than in a task.
	MaxBody int64
	// MaxItem is the largest task, outcome or sign of life in a call, and the largest
	// call without a list of them, in bytes: 4 MiB if it is 0. A store whose MaxPayload
	// is above 2.5 MiB needs more.
	MaxItem int64
	// MaxStreams is how many clients may listen for events or signals at a time:
	// 1024 if it is 0.
	MaxStreams int
	// Timeout is how long a client may take to send a call, and to take an answer or
	// a part of a stream: 30 s if it is 0.
	Timeout time.Duration
	// Hosts are the names, without ports, by which the server is asked for on a TCP
	// address besides localhost and the addresses of the loopback interface.
	Hosts []string
	// Token is what calls to a TCP address have to bring in the header Authorization,
	// as "Bearer" and the token; others are answered 401. Empty: whoever reaches the
	// address may call. Calls by a Unix socket need no token.
	Token string
	// Users are the user IDs whose processes may use the server by a Unix socket,
	// besides that of this process and root. Linux; on other systems the modes of the
	// socket and of its directory decide.
	Users []int
	// Logs has what tasks have written, each under its [LogName], in files that can
	// seek; nil if nobody keeps that.
	Logs fs.FS
	// Follow returns a channel that receives after there may be something new in the
	// log of a task, or the task is finished, until stop is called. It holds one
	// signal. Nil if nobody can tell: those who follow a log look again and again.
	Follow func(id queue.ID) (news <-chan struct{}, stop func())
	// LogFile identifies a file of Logs that has been opened: it returns another text for
	// a log that has lost its beginning, and the same one while the log only grows, also
	// after a restart. Empty if that is not known; nil if it never is: a client then
	// takes a log for another one only if it is shorter than before.
	LogFile func(log fs.File) string
	// Jobs returns how many tasks this process may run at once, and how many it runs,
	// after it has changed the first to what a client asks for, unless that is empty.
	// Notes are what the client's user should know of the change. Nil if the process runs
	// none. Errors: queue.ErrInvalid.
	Jobs func(to string) (most, running int, notes []string, err error)
	// Clock is for tests only: it makes the time of a call from what the client says
	// it is, which a server must not believe. Nil is the server's clock.
	Clock func(client time.Time) time.Time
	// Logger is told of errors that are the server's own, and once a minute of calls
	// that cannot be done because the store is not available; nil discards them.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.MaxBody = cmp.Or(c.MaxBody, 64<<20)
	c.MaxItem = cmp.Or(c.MaxItem, 4<<20)
	c.MaxStreams = cmp.Or(c.MaxStreams, 1024)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Server serves a store. It is an [http.Handler], safe for concurrent use.
type Server struct {
	store   queue.Store
	cfg     Config
	clock   clock
	handler http.Handler
	hub     *hub
	replays *replays
	errors  complaints
	streams atomic.Int64
	bodies  *csync.Semaphore // bytes of memory for bodies that are being decoded and done

	closing chan struct{} // closed when streams are to end
	close   sync.Once
}

// New returns a server of a store, which stays the caller's to close.
func New(store queue.Store, cfg Config) *Server {
	s := &Server{
		store: store, cfg: cfg.withDefaults(), clock: newClock(), hub: newHub(store),
		replays: newReplays(), closing: make(chan struct{}),
	}
	const atOnce = 2 // of the largest bodies
	s.bodies = csync.NewSemaphore(atOnce * wire.Cost(s.cfg.MaxBody))
	s.errors.log, s.errors.clock = s.cfg.Logger, s.clock
	s.handler = s.guarded(s.routes())
	return s
}

// ServeHTTP serves one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close ends the streams, which are the calls that would not end by themselves,
// and returns when nothing listens to the store any more. Calls are answered as
// before. It is to be called before the store is closed, when the last Serve has
// returned.
func (s *Server) Close() {
	s.close.Do(func() { close(s.closing) })
	s.hub.close()
}

// serving is where the context of a request has the end of its Serve, a channel
// that is closed.
type serving struct{}

// Serve answers calls that come by a listener, until ctx ends. Then it takes no
// more, ends its streams, waits [Config.Timeout] for those that are being
// answered, and returns nil if that was long enough. The listener is closed in any
// case. A server may serve several listeners at a time, and go on to serve when it
// has: only Close ends it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ending := make(chan struct{})
	end := sync.OnceFunc(func() { close(ending) })
	defer end()
	base := context.WithValue(context.WithoutCancel(ctx), serving{}, (<-chan struct{})(ending))
	hs := &http.Server{
		Handler: s, ReadHeaderTimeout: s.cfg.Timeout, IdleTimeout: 4 * s.cfg.Timeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: s.withPeer,
		ErrorLog:    slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelWarn),
	}
	served := make(chan error, 1)
	go func() { served <- hs.Serve(l) }()
	select {
	case err := <-served:
		end()
		return errors.Join(err, hs.Close())
	case <-ctx.Done():
	}
	end()
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Timeout)
	defer stop()
	err := hs.Shutdown(grace)
	if err != nil {
		err = errors.Join(err, hs.Close())
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
