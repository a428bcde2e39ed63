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
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/server"
)

// Kind is that of tasks that are commands; their payload is an
// [isolate.Command].
const Kind = "command"

// The names in the directory of a server.
const (
	storeName  = "store"
	logsName   = "logs"
	SocketName = "stint.sock"
)

// Config is how a server works.
type Config struct {
	Dir     string   // where everything is; made if it is not there
	Listen  string   // a TCP address of this machine, besides the socket; empty is none
	Jobs    int      // commands that run at once
	Queues  []string // that it works on
	Command isolate.Config
	Grace   time.Duration // for commands to end by themselves before they are told to
	LogsMax int64         // bytes of all logs together
	MinFree int64         // bytes that the disk has to have for tasks to be accepted
	// Patience is how long to try a directory that another process has, which may
	// have been killed a moment ago.
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
	const ownerOnly = 0o700
	if err := os.MkdirAll(cfg.Dir, ownerOnly); err != nil {
		return fmt.Errorf("%w; choose another directory with --dir", err)
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
		err = whileLocked(trying, func() error {
			store, err = filestore.Open(filepath.Join(cfg.Dir, storeName),
				filestore.Config{MinFree: cfg.MinFree, Logger: cfg.Logger})
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

// lockedEvery is how often a directory is tried that another process has.
const lockedEvery = 20 * time.Millisecond

// whileLocked calls open until it says anything else than that another process has
// the directory, or ctx ends.
func whileLocked(ctx context.Context, open func() error) error {
	for {
		err := open()
		if !errors.Is(err, syscall.EAGAIN) {
			return err
		}
		select {
		case <-time.After(lockedEvery):
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
	listeners, addresses, err := listen(ctx, cfg)
	if err != nil {
		return err
	}
	cfg.Command.Log = logs.open
	w := &worker{
		store: store,
		front: server.New(store, server.Config{Logger: cfg.Logger, Logs: logs.files(), Follow: logs.readers.add}),
		logs:  logs, listeners: listeners, cfg: cfg,
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
	go func() { ran <- q.Run(working, stint.New(w.cfg.Jobs, stint.Config{}), w.cfg.Queues...) }()
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
