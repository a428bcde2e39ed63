// Package serve implements stint serve, the durable scheduler as a process: a store in a
// directory, its server for other processes, and a worker for tasks that are commands.
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/logthrottle"
	"github.com/stintgo/stint/internal/ownership"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/server"
	"github.com/stintgo/stint/transfer"
	"github.com/stintgo/stint/transfer/s3"
)

// Kind is the kind of tasks that are commands; their payload is an [isolate.Command].
const Kind = "command"

// StdinMax is the limit for the standard input of a task of [Kind], in bytes. The payload
// has it in base64, which is a third longer, besides the arguments and the environment.
const StdinMax = 1 << 20

// payloadMax is the limit for the payload of a task, in bytes.
const payloadMax = 2 * StdinMax

// Names in the directory of a server.
const (
	storeName  = "store"
	lockName   = "LOCK"
	logsName   = "logs"
	SocketName = "stint.sock"
)

// Config configures a server.
type Config struct {
	Dir    string  // of the socket, the logs and, without Store, the tasks; created if missing
	Store  string  // the URL of the tasks on a database server; empty: they are in Dir
	Groups []Group // of queues, besides the default group; empty: the Store has all queues
	Listen string  // a TCP address of this machine, besides the socket; empty: none
	// NodeListen and NodeAddress are Listen and Address of [cluster.Config], for a Store on
	// a database server.
	NodeListen, NodeAddress string
	Jobs                    int // how many commands run at once, initially
	// JobsNote says why Jobs is lower than asked for, or is empty.
	JobsNote string
	// ParseJobs parses a new value of Jobs from a client. Its note is like JobsNote.
	ParseJobs func(text string) (n int, note string, err error)
	Queues    []string // to take tasks from
	Command   isolate.Config
	Transfer  transfer.Config // of uploads from this server: tasks of [transfer.Kind]
	Uploads   Uploads         // to this server
	Grace     time.Duration   // for commands to end by themselves, before they get SIGTERM
	LogsMax   int64           // of all logs together, in bytes; 0 means DefaultLogsMax
	MinFree   int64           // free disk space below which tasks are refused; in bytes
	// Patience is how long to retry a directory or a TCP address that another process
	// uses: a killed server may release it a moment later. A database server is waited for as
	// long, and at least 5 s.
	Patience time.Duration
	Logger   *slog.Logger
	// Ready is called with the addresses of the server each time it accepts connections.
	Ready func(addresses []string)

	lock     *os.File     // of Dir if the store is elsewhere
	forNodes *lateHandler // answers the other servers of the Store
}

// ErrForced is returned by a server that did not wait for its commands.
var ErrForced = errors.New("stopped at once: what was running begins again at the next start")

// Run serves until ctx ends. It then starts no more commands, waits for the running ones,
// and returns nil. If force ends, it kills them and returns [ErrForced].
func Run(ctx, force context.Context, cfg Config) error {
	cfg.Logger = slog.New(logthrottle.New(cfg.Logger.Handler()))
	const ownerOnly = 0o700
	if err := os.MkdirAll(cfg.Dir, ownerOnly); err != nil {
		return fmt.Errorf("%w; choose another directory with --dir", err)
	}
	if err := ownership.Directory(cfg.Dir); err != nil {
		return err
	}
	if err := ownership.Above(cfg.Dir); err != nil {
		cfg.Logger.Warn("another user can replace the data directory", slog.Any("error", err))
	}
	if err := lockDir(force, &cfg); err != nil {
		return err
	}
	store, err := open(ctx, force, &cfg)
	if err != nil {
		return err
	}
	return errors.Join(run(ctx, force, &cfg, store), store.Close())
}

// open opens the store. With millions of tasks, or a disk that hangs, that takes a while. If
// force ends first, open returns, and the process ends without closing the store,
// which is safe.
func open(ctx, force context.Context, cfg *Config) (queue.Store, error) {
	var store queue.Store
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		store, err = openStore(ctx, cfg)
	}()
	select {
	case <-opened:
		return store, err
	case <-force.Done():
		return nil, ErrForced
	}
}

// busyEvery is the interval between two tries of a directory or an address in use.
const busyEvery = 20 * time.Millisecond

// retryWhile calls open until it returns another error than busy, patience has passed, or
// ctx ends.
func retryWhile(ctx context.Context, patience time.Duration, busy error, open func() error) error {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		err := open()
		if !errors.Is(err, busy) {
			return err
		}
		select {
		case <-time.After(busyEvery):
		case <-ctx.Done():
			return err
		}
	}
}

// run is Run with the store open. A lock ensures that no other server uses the directory.
func run(ctx, force context.Context, cfg *Config, store queue.Store) error {
	logs, err := openLogs(filepath.Join(cfg.Dir, logsName), cfg.Command.Output, cfg.LogsMax, storeOf(cfg), cfg.Logger)
	if err != nil {
		return err
	}
	var token string
	if cfg.Listen != "" {
		if token, err = openToken(cfg.Dir, TokenName); err != nil {
			return err
		}
	}
	listeners, addresses, err := listen(ctx, cfg)
	if err != nil {
		return err
	}
	conns := newConnections(connectionsFor(openFiles(), cfg.Jobs), cfg.Logger)
	for i, l := range listeners {
		listeners[i] = conns.limit(l)
	}
	jobs := &jobs{stint.New(cfg.Jobs, stint.Config{}), conns, cfg.ParseJobs, cfg.Logger}
	jobs.note(cfg.JobsNote)
	cfg.Command.Log = logs.open
	front := server.Config{
		Logger: cfg.Logger, Logs: logs.files(), LogFile: fileOf, Follow: logs.readers.add, Token: token,
		Jobs: jobs.change,
	}
	name := "" // that of queue.Config
	node := nodeIn(store)
	shared := node != nil
	if shared {
		front.LogAt = logServers{store, node, filepath.Join(cfg.Dir, logsName)}.at
		name = workerOf(node.Name())
	}
	q := queue.New(store, queue.Config{
		Worker: name, Grace: cfg.Grace, WaitDelay: cfg.Command.Grace + haltTimeout, Logger: cfg.Logger,
	})
	queue.Kind[isolate.Command](Kind).Handle(q, isolate.Commands(cfg.Command))
	cfg.Transfer.S3 = s3.Open
	transfer.Handle(q, cfg.Transfer)
	var received *uploads
	if cfg.Uploads.Dir != "" {
		if received, err = openUploads(ctx, cfg, q); err != nil {
			return err
		}
		addresses = append(addresses, received.address())
		received.listener = conns.limit(received.listener)
	}
	w := &worker{
		queue: q, uploads: received, front: server.New(store, front),
		logs: logs, listeners: listeners, slots: jobs.slots, cfg: cfg,
	}
	if shared {
		cfg.forNodes.set(w.front.ServeLog)
	}
	cfg.Ready(addresses)
	return w.run(ctx, force)
}

// worker is a server that accepts connections and runs commands.
type worker struct {
	cfg       *Config
	queue     *queue.Queue
	uploads   *uploads // nil if it receives none
	front     *server.Server
	logs      *logs
	listeners []net.Listener
	slots     stint.Scheduler // for commands
}

// haltTimeout is how long the server waits for commands that it has killed.
const haltTimeout = 10 * time.Second

// run runs the loops of the server. Work ends first and the connections last, so that
// clients can see what the server still waits for.
func (w *worker) run(ctx, force context.Context) error {
	q := w.queue
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	var loops sync.WaitGroup
	failed := make(chan error, len(w.listeners)+1)
	loop := func(serve func() error) {
		loops.Go(func() {
			if err := serve(); err != nil {
				failed <- err
				stop(err)
			}
		})
	}
	for _, l := range w.listeners {
		loop(func() error { return serveCalls(serving, w.front, l, w.cfg.Logger) })
	}
	if w.uploads != nil {
		loop(func() error { return w.uploads.run(serving) })
	}
	loops.Go(func() { w.logs.tidyUntil(serving, q) })
	ran := make(chan error, 1)
	go func() { ran <- q.Run(working, w.slots, w.cfg.Queues...) }()
	var err error
	select {
	case err = <-ran:
		err = unexpected(working, err)
	case <-force.Done():
		q.Halt()
		var left []any
		if err := unexpected(working, <-ran); err != nil {
			left = append(left, slog.Any("left", err))
		}
		w.cfg.Logger.Info("stopped at once", left...)
		isolate.Kill() // before the store is closed and another process may open it
		err = ErrForced
	}
	stopServing()
	if !ended(force, &loops) {
		err = ErrForced
	}
	w.front.Close()
	select {
	case fault := <-failed:
		err = errors.Join(err, fault)
	default:
	}
	return err
}

// unexpected returns err, the error of [queue.Queue.Run], unless that is only the cause of the end
// of its context.
func unexpected(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), err) {
		return nil
	}
	return err
}

// serveCalls answers calls at a listener until ctx ends. Clients that have not ended their calls by
// the timeout of front are disconnected, which is not an error of the server.
func serveCalls(ctx context.Context, front *server.Server, l net.Listener, log *slog.Logger) error {
	err := front.Serve(ctx, l)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		log.Warn("clients whose calls had not ended were disconnected", slog.Any("address", l.Addr()))
		return nil
	}
	return err
}

// forcedTimeout is how long a server that is to stop at once waits for calls in progress.
const forcedTimeout = time.Second

// ended waits for loops, or if force ends, for [forcedTimeout] after that. It reports whether they
// have ended.
func ended(force context.Context, loops *sync.WaitGroup) bool {
	done := make(chan struct{})
	go func() { // ends with the last call, or with the process
		loops.Wait()
		close(done)
	}()
	select {
	case <-done:
		return true
	case <-force.Done():
	}
	select {
	case <-done:
		return true
	case <-time.After(forcedTimeout):
		return false
	}
}
