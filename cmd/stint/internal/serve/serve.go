// Package serve is the durable scheduler as a process: a store in a directory,
// its server for other processes, and a worker for tasks that are commands. It
// is what is behind stint serve.
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
	"syscall"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/logthrottle"
	"github.com/stintgo/stint/internal/ownership"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/server"
)

// Kind is that of tasks that are commands; their payload is an
// [isolate.Command].
const Kind = "command"

// StdinMax is how many bytes of standard input a task of [Kind] can have. Its payload
// has them in base64, a third longer, besides the words and the environment.
const StdinMax = 1 << 20

// payloadMax is how many bytes the payload of a task can have.
const payloadMax = 2 * StdinMax

// The names in the directory of a server.
const (
	storeName  = "store"
	logsName   = "logs"
	SocketName = "stint.sock"
)

// Config is how a server works.
type Config struct {
	Dir    string // where everything is; made if it is not there
	Listen string // a TCP address of this machine, besides the socket; empty is none
	Jobs   int    // commands that run at once, at first
	// JobsNote says why Jobs is not the number that was asked for, if it is not.
	JobsNote string
	// ParseJobs reads another number of them, as a client sends it. Its note is as
	// JobsNote.
	ParseJobs func(text string) (n int, note string, err error)
	Queues    []string // that it works on
	Command   isolate.Config
	Grace     time.Duration // for commands to end by themselves before they are told to
	LogsMax   int64         // bytes of all logs together
	MinFree   int64         // bytes that the disk has to have for tasks to be accepted
	// Patience is how long to try a directory or a TCP address that another process
	// has, which may have been killed a moment ago.
	Patience time.Duration
	Logger   *slog.Logger
	// Ready is called with the addresses of the server when it can be reached.
	Ready func(addresses []string)
}

// ErrForced is the end of a server that did not wait for its commands.
var ErrForced = errors.New("stopped at once: what ran begins again at the next start")

// Run serves until ctx ends. It then starts nothing more, waits for the commands
// that run, and returns nil. If force ends it kills them and returns [ErrForced].
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
	store, err := open(force, &cfg)
	if err != nil {
		return err
	}
	err = run(ctx, force, &cfg, store)
	return errors.Join(err, store.Close())
}

// open opens the store. With millions of tasks, or a disk that hangs, that takes its
// time, and whoever wants to end the server should not have to wait for it: the
// process ends then, which is as good as closing it.
func open(force context.Context, cfg *Config) (*filestore.Store, error) {
	var store *filestore.Store
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		trying, stop := context.WithTimeout(force, cfg.Patience)
		defer stop()
		err = retryWhile(trying, syscall.EAGAIN, func() error {
			store, err = filestore.Open(filepath.Join(cfg.Dir, storeName),
				filestore.Config{MinFree: cfg.MinFree, MaxPayload: payloadMax, Logger: cfg.Logger})
			return err
		})
	}()
	select {
	case <-opened:
		return store, err
	case <-force.Done():
		return nil, ErrForced
	}
}

// busyEvery is how often a directory or an address is tried that another process has.
const busyEvery = 20 * time.Millisecond

// retryWhile calls open until it returns another error than busy, or ctx ends.
func retryWhile(ctx context.Context, busy error, open func() error) error {
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

// run is Run with the store, whose lock says that the directory is ours.
func run(ctx, force context.Context, cfg *Config, store *filestore.Store) error {
	logs, err := openLogs(filepath.Join(cfg.Dir, logsName), cfg.Command.Output, cfg.LogsMax, cfg.Logger)
	if err != nil {
		return err
	}
	var token string
	if cfg.Listen != "" {
		if token, err = openToken(cfg.Dir); err != nil {
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
	w := &worker{
		store: store,
		front: server.New(store, server.Config{
			Logger: cfg.Logger, Logs: logs.files(), LogFile: fileOf, Follow: logs.readers.add, Token: token,
			Jobs: jobs.change,
		}),
		logs: logs, listeners: listeners, slots: jobs.slots, cfg: cfg,
	}
	cfg.Ready(addresses)
	return w.run(ctx, force)
}

// worker is a server that is open for business.
type worker struct {
	cfg       *Config
	store     queue.Store
	front     *server.Server
	logs      *logs
	listeners []net.Listener
	slots     stint.Scheduler // of the commands
}

// linger is how long the server waits for commands that it has killed.
const linger = 10 * time.Second

// run runs the loops of the server. The work ends first, then the answers, so
// that people can see what it still waits for.
func (w *worker) run(ctx, force context.Context) error {
	q := queue.New(w.store, queue.Config{
		Grace: w.cfg.Grace, Linger: w.cfg.Command.Grace + linger, Logger: w.cfg.Logger,
	})
	queue.Handle(q, Kind, isolate.Commands(w.cfg.Command))
	working, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	var loops sync.WaitGroup
	failed := make(chan error, len(w.listeners))
	for _, l := range w.listeners {
		loops.Go(func() {
			if err := w.front.Serve(serving, l); err != nil {
				failed <- err
				stop(err)
			}
		})
	}
	loops.Go(func() { w.logs.tidyUntil(serving, q) })
	ran := make(chan error, 1)
	go func() { ran <- q.Run(working, w.slots, w.cfg.Queues...) }()
	var err error
	select {
	case err = <-ran:
		if errors.Is(context.Cause(working), err) { // it has ended as it should
			err = nil
		}
	case <-force.Done():
		q.Halt()
		w.cfg.Logger.Info("stopped at once", slog.Any("left", <-ran))
		isolate.Kill() // before the store is closed, and somebody else may open it
		err = ErrForced
	}
	stopServing()
	loops.Wait()
	close(failed)
	return errors.Join(err, <-failed)
}
