// Package remote connects the commands of stint to a server, and finds tasks by parts of
// their IDs.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/internal/peer"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// DefaultDir is the directory of the server if none is given.
const DefaultDir = "stint-data"

// Server is a connection to a server. It must be closed.
type Server struct {
	*queue.Queue
	store queue.Store
}

// Config configures the connection.
type Config struct {
	Patience time.Duration // as in [httpstore.Config]
	Timeout  time.Duration // as in [httpstore.Config]
	// TokenFile is the path of the file with the token for a TCP address; "" means no
	// token.
	TokenFile string
}

// Open returns the server at an address: an http: address, the path of its socket, with
// or without a leading unix:, or the directory that it serves. It connects with the first
// call.
func Open(address string, cfg Config) (*Server, error) {
	if !strings.HasPrefix(address, "unix:") && !strings.Contains(address, "://") {
		if looksLikePort(address) {
			return nil, fmt.Errorf("there is no directory %s; for the server at that address, give http://%s", address, address)
		}
		path, err := socketOf(address)
		if err != nil {
			return nil, err
		}
		address = "unix:" + path
	}
	to := httpstore.Config{Patience: cfg.Patience, Timeout: cfg.Timeout}
	if cfg.TokenFile != "" && !strings.HasPrefix(address, "unix:") {
		token, err := serve.ReadToken(cfg.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("the token for %s: %w", address, err)
		}
		to.Token = token
	}
	store, err := httpstore.Open(address, to)
	if err != nil {
		return nil, err
	}
	return On(store), nil
}

// socketOf returns the path of the socket for an address without a scheme: a socket, or
// the directory of a server. The socket of a stopped server may not exist, so a path that
// ends with its name in such a directory is also taken for a socket, unless it is a
// directory.
func socketOf(path string) (string, error) {
	info, err := os.Stat(path)
	switch {
	case filepath.Base(path) == serve.SocketName && (err != nil || !info.IsDir()):
		return serve.Socket(filepath.Dir(path))
	case err == nil && info.Mode()&fs.ModeSocket != 0:
		return path, nil
	}
	return serve.Socket(path)
}

// dirOf returns the directory of the server at an address: that of its socket, or the address itself.
func dirOf(address string) string {
	path := strings.TrimPrefix(address, "unix:")
	if filepath.Base(path) == serve.SocketName {
		return filepath.Dir(path)
	}
	return path
}

// looksLikePort reports whether an address without a scheme is more likely a network
// address than the name of a directory.
func looksLikePort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if _, odd := strconv.ParseUint(port, 10, 16); err != nil || odd != nil {
		return false
	}
	_, err = os.Stat(address)
	return err != nil
}

// On returns a server that uses a given store.
func On(store queue.Store) *Server {
	return &Server{queue.New(store, queue.Config{}), store}
}

// Close closes the connection.
func (s *Server) Close() error { return s.store.Close() }

// probeEvery is the interval between two checks that the server is alive during Wait.
const probeEvery = 5 * time.Second

// Wait is [queue.Queue.Wait]. It keeps waiting while the server cannot be reached, since
// it may be started again. It returns [httpstore.ErrNoAnswer] if the server exists and does not
// answer, for example because its process is stopped. It calls away when the server cannot
// be reached, or cannot answer, for some seconds.
func (s *Server) Wait(ctx context.Context, id queue.ID, away func(error)) (queue.Task, error) {
	waiting, stop := context.WithCancelCause(ctx)
	var probing sync.WaitGroup
	defer probing.Wait()
	defer stop(nil)
	probing.Go(func() {
		again := time.NewTicker(probeEvery)
		defer again.Stop()
		isAway := false
		for {
			select {
			case <-again.C:
			case <-waiting.Done():
				return
			}
			_, err := s.store.Find(waiting, queue.Filter{IDs: []queue.ID{id}}, queue.Page{Limit: 1, Durable: true})
			switch was := isAway; {
			case errors.Is(err, httpstore.ErrNoAnswer):
				stop(err)
			case waiting.Err() != nil:
			default:
				if isAway = errors.Is(err, queue.ErrUnavailable); isAway && !was {
					away(err)
				}
			}
		}
	})
	return s.Queue.Wait(waiting, id)
}

// Page returns a page of tasks; see [queue.Store].
func (s *Server) Page(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	return s.store.Find(ctx, f, p)
}

// logger is a store that has logs too.
type logger interface {
	Log(ctx context.Context, id queue.ID, from httpstore.LogPosition) (io.ReadCloser, httpstore.LogPosition, error)
	FollowLog(ctx context.Context, id queue.ID, from httpstore.LogPosition) (io.ReadCloser, httpstore.LogPosition, error)
	LogEnd(ctx context.Context, id queue.ID, n int64) (io.ReadCloser, httpstore.LogPosition, error)
}

var errNoLogs = errors.New("this server has no logs: use the address of the server that runs the commands")

// Log returns the output of a task from a position on. If the log is followed, it waits
// for more; see [httpstore.Store.Log].
func (s *Server) Log(
	ctx context.Context, id queue.ID, from httpstore.LogPosition, follow bool,
) (log io.ReadCloser, at httpstore.LogPosition, err error) {
	l, ok := s.store.(logger)
	switch {
	case !ok:
		return nil, at, errNoLogs
	case follow:
		return l.FollowLog(ctx, id, from)
	default:
		return l.Log(ctx, id, from)
	}
}

// LogEnd returns the last n bytes of the output of a task; see [httpstore.Store.LogEnd].
func (s *Server) LogEnd(
	ctx context.Context, id queue.ID, n int64,
) (log io.ReadCloser, at httpstore.LogPosition, err error) {
	l, ok := s.store.(logger)
	if !ok {
		return nil, at, errNoLogs
	}
	return l.LogEnd(ctx, id, n)
}

// Jobs returns how many commands the server may run at once, and how many it runs, after
// it has changed the first unless to is empty; see [httpstore.Store.Jobs].
func (s *Server) Jobs(
	ctx context.Context, now time.Time, to string,
) (most, running int, notes []string, err error) {
	store, ok := s.store.(*httpstore.Store)
	if !ok {
		return 0, 0, nil, errors.New("this server runs no commands: use the address of the server that does")
	}
	return store.Jobs(ctx, now, to)
}

// Explain returns err, an error of the server at an address, with a remedy.
func Explain(err error, address string) error {
	if foreign, ok := errors.AsType[*peer.ForeignError](err); ok {
		return fmt.Errorf("the server at %s is another user's, and nothing was sent to it: %w; run the command as user %d, "+
			"or name a server of your own with --server", address, foreign, foreign.UID)
	}
	if errors.Is(err, httpstore.ErrNoAnswer) {
		return fmt.Errorf("%w: its process may be stopped (kill -CONT continues it) or overloaded, and may still do what it "+
			"was asked; STINT_CALL_TIMEOUT=2m waits longer for an answer", err)
	}
	network, ok := errors.AsType[*net.OpError](err)
	if !ok || network.Op != "dial" {
		return err
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the server at %s is another user's: run the command as that user, "+
			"or name a server of your own with --server: %w", address, network)
	}
	if serve.InUse(dirOf(address)) {
		return fmt.Errorf("the server at %s takes no calls at present: another process uses its directory, which may "+
			"be the server that opens its store or ends, or a stint store copy; try again, or let the command try for longer "+
			"with STINT_PATIENCE=1m: %w",
			address, network)
	}
	const storeName = "store" // in the directory of a server or of stint upload
	start := "stint serve"
	if _, err := os.Stat(filepath.Join(address, storeName)); err == nil && filepath.Clean(address) != DefaultDir {
		start += " --dir " + address + ", which continues what is there"
	}
	return fmt.Errorf("no server at %s: start one with %s, or name another with --server: %w", address, start, network)
}
