// Package server gives other processes access to a store over HTTP: each call of
// [queue.Store] is one request. Package queue/httpstore is the client; it implements
// [queue.Store], so a worker uses a remote store as it does a local one.
//
//	store, err := filestore.Open("stint-data", filestore.Config{})
//	...
//	l, err := net.Listen("unix", "stint.sock") // or "tcp", "127.0.0.1:7117"
//	...
//	s := server.New(store, server.Config{})
//	go worker.Run(ctx, ...)     // this process may use the store too
//	err = s.Serve(ctx, l)       // until ctx ends; a server may serve several listeners
//	s.Close()                   // then close the store
//
// # Time
//
// The clock of the server decides. Each call carries the time of the client's clock.
// If that differs by 1 s or more, the server converts the times of the call, such as
// RunAt and Deadline, to its own clock, and the times of the answer to the client's. So a
// task that a client delays by ten minutes starts after ten minutes, however far apart
// the two clocks are. Schedules are times of day, and follow the clocks of the processes
// that submit their tasks.
//
// # Leases
//
// Clients of the server are other processes, so their leases outlive this one: when
// the server restarts, their workers continue. Workers in this process use the store
// directly, and set [queue.Claim.Remote] themselves.
//
// # Access and limits
//
// A client may call everything. By a Unix socket [Server.Serve] admits processes of
// its own user, of root and of [Config.Users]; on systems other than Linux, every process
// that can open the socket. At a TCP address it admits clients that have [Config.Token],
// or every client if there is no token. At a TCP address, requests must name localhost, a
// loopback address, or a name of [Config.Hosts] as their host. Requests that a browser makes
// for the page of another site are refused: every call must name its program in the header
// Stint-Client, which such pages cannot set.
//
// The size of a call is limited, and so is the time that a client has to send it and
// to read the answer. The number of items in a call is limited too. The bodies of all
// calls that are received and executed at once, apart from those of up to 4 KiB, or 1 KiB
// if packed, take at most twice the memory of the largest, 394 MiB with the default of
// [Config.MaxBody]; further calls wait. An answer to
// Claim or Find has at most 1,000 tasks, and ends with the task that brings it to 16 MiB.
// Such an answer takes about 105 MiB while it is made, and 22 MiB until the client has read
// it, or [Config.Timeout] has passed. The memory for answers is not limited otherwise: 100
// clients that do not read the largest answers hold 2.2 GiB. No lock is held meanwhile.
package server

// The files:
//
//   - server.go: Config, Server, its listeners and its end
//   - accesscontrol.go: which requests are accepted: host, origin, token, user
//   - routes.go: the paths of all calls
//   - execute.go: decodes and executes calls
//   - calls.go: the calls of a store
//   - once.go: calls that a client repeats are done once
//   - idempotency.go: the answers that repeated calls get
//   - body.go: limits for the size of requests, and the memory for them
//   - answer.go: encodes answers and problems
//   - times.go: converts times between the clocks of client and server
//   - streams.go: requests that last: signals and events
//   - events.go: the events not yet written to a stream
//   - hub.go: passes the signals of each queue to the clients, to one of them at first
//   - log.go: the logs of commands
//   - forward.go: the logs of commands that another process keeps
//   - jobs.go: the number of commands that run at once
//   - errorthrottle.go: logs internal errors; those of an unavailable store once a minute, with their number

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

// Config configures a server. The zero value is a good default.
type Config struct {
	// MaxBody is the largest body of a call, in bytes; 0 means 64 MiB. Payloads are a
	// third longer in a call in JSON than in a task (base64).
	MaxBody int64
	// MaxItem is the largest task, outcome or heartbeat in a call, and the largest
	// call without a list, in bytes; 0 means 4 MiB. A store whose MaxPayload is above 2.5
	// MiB needs more.
	MaxItem int64
	// MaxStreams is how many streams of events or signals, and requests that wait for a
	// log, may be open at once; 0 means 1024. Those of signals together may name 16,384
	// queues.
	MaxStreams int
	// Timeout is how long a client may take to send a call, and to read an answer or a
	// part of a stream; 0 means 30 s.
	Timeout time.Duration
	// Hosts are further host names, without ports, that requests at a TCP address may
	// have, besides localhost and the addresses of the loopback interface.
	Hosts []string
	// Token is the secret that calls to a TCP address must have in the header
	// Authorization, as "Bearer" and the token; calls without it are answered 401. If it
	// is empty, every client that reaches the address may call. Calls by a Unix socket
	// need no token.
	Token string
	// Users are the IDs of further users whose processes may use the server by a Unix
	// socket, besides the user of this process and root. Linux only; on other systems the
	// modes of the socket and of its directory decide.
	Users []int
	// Logs has the output of tasks, in files named by [LogName] that must implement
	// io.Seeker. Nil if there are no logs.
	Logs fs.FS
	// Follow returns a channel that receives when the log of a task may have grown or
	// the task has finished, until stop is called. The channel buffers one signal. Nil if
	// there are no such signals: clients that follow a log then poll it.
	Follow func(id queue.ID) (news <-chan struct{}, stop func())
	// LogFile returns the identity of an open file of Logs: it changes when a log has
	// lost its beginning, and stays the same, also after a restart, while the log only
	// grows. It returns "" if the identity is unknown. If LogFile is nil, a client
	// detects another log only by its being shorter than before.
	LogFile func(log fs.File) string
	// LogAt returns what sends a request to the process that keeps the log of a task, or nil
	// if this one does. A request for the log is sent with it, for the same path and with the
	// same query, and must reach [Server.ServeLog] there. Nil if this process keeps all logs.
	// Errors are those of a call.
	LogAt func(ctx context.Context, id queue.ID) (http.RoundTripper, error)
	// Jobs returns how many tasks this process may run at once, and how many it runs
	// now, after it has set the first to the value that a client asks for, unless that is
	// empty. Notes are messages about the change for the client's user. Nil if the
	// process runs no tasks. Errors: queue.ErrInvalid.
	Jobs func(to string) (most, running int, notes []string, err error)
	// Clock is the time at which calls take effect, for a store that goes by another clock than
	// this process, in UTC; it must not jump. Nil is the clock of this process, which setting it
	// does not change.
	Clock func() time.Time
	// Logger receives the internal errors of the server, and at most once a minute the
	// calls that fail because the store is unavailable; nil discards them.
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
	handler http.Handler
	access  *accessControl
	streams *streams
	logs    *logs
	timeout time.Duration
	logger  *slog.Logger
}

// New returns a server of a store. The caller closes the store. If the store has a method
// HasWaiting(queue string) bool, as memstore, filestore, pgstore and redisstore have, a signal
// is passed to more and more clients only while tasks of the queue wait, and otherwise to all.
func New(store queue.Store, cfg Config) *Server {
	cfg = cfg.withDefaults()
	if cfg.Clock == nil {
		cfg.Clock = clock.Of(store).Now
	}
	to := &responder{timeout: cfg.Timeout, errors: errorThrottle{log: cfg.Logger, clock: clock.New()}}
	s := &Server{
		access:  &accessControl{hosts: cfg.Hosts, token: cfg.Token, users: cfg.Users, to: to},
		streams: newStreams(store, &cfg, to), timeout: cfg.Timeout, logger: cfg.Logger,
	}
	s.logs = &logs{
		store: store, files: cfg.Logs, follow: cfg.Follow, file: cfg.LogFile, at: cfg.LogAt, streams: s.streams, to: to,
	}
	b := newBodies(&cfg, to)
	x := &executor{now: cfg.Clock, timeout: cfg.Timeout, bodies: b, cache: newIdempotencyCache(), to: to}
	s.handler = s.access.admitted(b.limited(routes(x, calls{store}, cfg.Jobs, s.streams, s.logs)))
	return s
}

// ServeHTTP serves one call.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// ServeLog answers a request for a log of this process. Mount it where the RoundTripper of
// [Config.LogAt] in the other server processes sends its requests. It asks for no token: the
// caller of ServeLog decides whether the client may read the log.
func (s *Server) ServeLog(w http.ResponseWriter, r *http.Request) {
	if id, ok := s.logs.idIn(w, r); ok {
		s.logs.serveOwn(w, r, id)
	}
}

// Close ends the streams, which do not end by themselves, and returns when the server
// no longer listens to the store. Other calls are still answered. Call it when the last
// Serve has returned, before closing the store.
func (s *Server) Close() { s.streams.end() }

// serving is the context key of a request for the channel that is closed when its
// Serve ends.
type serving struct{}

// Serve answers calls from a listener until ctx ends. Then it accepts no more calls,
// ends its streams, waits up to [Config.Timeout] for the calls in progress, and returns
// nil if they have ended by then. It always closes the listener. A server may serve
// several listeners at once, and may serve again after Serve has returned: only Close
// ends it.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ending := make(chan struct{})
	end := sync.OnceFunc(func() { close(ending) })
	defer end()
	base := context.WithValue(context.WithoutCancel(ctx), serving{}, (<-chan struct{})(ending))
	hs := &http.Server{
		Handler: s, ReadHeaderTimeout: s.timeout, IdleTimeout: 4 * s.timeout, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return base },
		ConnContext: s.access.withPeer,
		ErrorLog:    slog.NewLogLogger(s.logger.Handler(), slog.LevelWarn),
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
	grace, stop := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
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
