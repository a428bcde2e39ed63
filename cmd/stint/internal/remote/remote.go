// Package remote is how the commands of stint reach a server, and name its
// tasks.
package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// DefaultDir is where a server is that nobody has named.
const DefaultDir = "stint-data"

// Server is one that the commands use. It has to be closed.
type Server struct {
	*queue.Queue
	store queue.Store
}

// Open returns the server at an address: unix: and the path of its socket, an
// http: address, or the directory that it serves. It connects later: calls try to
// reach it as long as patience says.
func Open(address string, patience time.Duration) (*Server, error) {
	if !strings.HasPrefix(address, "unix:") && !strings.Contains(address, "://") {
		if looksLikePort(address) {
			return nil, fmt.Errorf("there is no directory %s: for the server at that address, give http://%s", address, address)
		}
		path, err := serve.Socket(address)
		if err != nil {
			return nil, err
		}
		address = "unix:" + path
	}
	store, err := httpstore.Open(address, httpstore.Config{Patience: patience})
	if err != nil {
		return nil, err
	}
	return On(store), nil
}

// looksLikePort reports whether an address without a scheme is more likely one of a
// network than the name of a directory.
func looksLikePort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	if _, odd := strconv.ParseUint(port, 10, 16); err != nil || odd != nil {
		return false
	}
	_, err = os.Stat(address)
	return err != nil
}

// On returns a server that is any store.
func On(store queue.Store) *Server {
	return &Server{queue.New(store, queue.Config{}), store}
}

// Close ends the connection.
func (s *Server) Close() error { return s.store.Close() }

// Page returns tasks a page at a time; see [queue.Store].
func (s *Server) Page(ctx context.Context, f queue.Filter, p queue.Page) ([]queue.Task, error) {
	return s.store.Find(ctx, f, p)
}

// logger is a store that has logs too.
type logger interface {
	Log(ctx context.Context, id queue.ID, from int64) (io.ReadCloser, int64, error)
	FollowLog(ctx context.Context, id queue.ID, from int64) (io.ReadCloser, int64, error)
}

// Log returns what a task has written, from a byte on or the first one, and waits for
// more if that is to be followed; see [httpstore.Store.Log].
func (s *Server) Log(
	ctx context.Context, id queue.ID, from int64, follow bool,
) (log io.ReadCloser, at int64, err error) {
	l, ok := s.store.(logger)
	switch {
	case !ok:
		return nil, 0, errors.New("there are no logs here: ask the server that runs the commands")
	case follow:
		return l.FollowLog(ctx, id, from)
	default:
		return l.Log(ctx, id, from)
	}
}

// Explain says what can be done about an error of a server at an address.
func Explain(err error, address string) error {
	network, ok := errors.AsType[*net.OpError](err)
	if !ok || network.Op != "dial" {
		return err
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("the server at %s is another user's: ask as that one, or have it started with --listen: %w",
			address, network)
	}
	return fmt.Errorf("no server at %s: start one with stint serve, or name another with --server: %w", address, network)
}
