package serve

import (
	"context"
	"log/slog"
	"net"
	"os"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/server"
)

// Logs are the logs of a server, for tests that call their methods directly.
type Logs struct{ *logs }

// OpenLogs opens the logs in a directory.
func OpenLogs(dir string, each, all int64) (Logs, error) { return OpenLogsOf(dir, each, all, "") }

// OpenLogsOf opens the logs of a store in a directory.
func OpenLogsOf(dir string, each, all int64, store string) (Logs, error) {
	l, err := openLogs(dir, each, all, store, slog.New(slog.DiscardHandler))
	return Logs{l}, err
}

// Write writes an attempt with a text, if it is not empty, after calling before.
func (l Logs) Write(t *queue.Task, text string, before ...func()) error {
	w, err := l.open(context.Background(), t)
	if err != nil {
		return err
	}
	for _, do := range before {
		do()
	}
	if text == "" {
		return w.Close()
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	return w.Close()
}

// FailAtEnd writes an attempt whose tail is kept, and whose last write fails.
func (l Logs) FailAtEnd(t *testing.T, task *queue.Task, text, tail string) {
	t.Helper()
	log, err := l.open(context.Background(), task)
	if err != nil {
		t.Fatal(err)
	}
	w := log.(*logWriter)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Error(err)
	}
	if err := w.KeepTail([]byte(tail)); err != nil {
		t.Error(err)
	}
	if err := w.file.Close(); err != nil {
		t.Error(err)
	}
	if w.file, err = l.root.OpenFile(server.LogName(task.ID), os.O_RDONLY, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(tail)); err == nil {
		t.Error("a file that is open for reading was written")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// KeepTail stores the tail of an attempt that is still running when the server is killed.
func (l Logs) KeepTail(t *testing.T, id queue.ID, text string) {
	t.Helper()
	if err := (&logWriter{logs: l.logs, id: id}).KeepTail([]byte(text)); err != nil {
		t.Error(err)
	}
}

// Follow registers a reader of a log.
func (l Logs) Follow(id queue.ID) (news <-chan struct{}, leave func()) { return l.readers.add(id) }

// Watch notifies readers until ctx ends.
func (l Logs) Watch(ctx context.Context, q *queue.Queue) { l.watch(ctx, q) }

// Remove removes the log of a forgotten task.
func (l Logs) Remove(id queue.ID) { l.remove(id) }

// Tidy runs one cleanup.
func (l Logs) Tidy(ctx context.Context, q *queue.Queue) { l.tidy(ctx, q) }

// CheckLoopback is checkLoopback.
var CheckLoopback = checkLoopback

// LockDir is lockDir.
func LockDir(ctx context.Context, cfg *Config) error { return lockDir(ctx, cfg) }

// RetryWhile is retryWhile.
var RetryWhile = retryWhile

// LimitConnections bounds the connections of several listeners together.
func LimitConnections(most int64, logger *slog.Logger, listeners ...net.Listener) (limited []net.Listener) {
	c := newConnections(most, logger)
	for _, l := range listeners {
		limited = append(limited, c.limit(l))
	}
	return limited
}

// ConnectionsFor is connectionsFor.
var ConnectionsFor = connectionsFor

// UploadsServer is uploadsServer.
var UploadsServer = uploadsServer

// Route is route.
var Route = route

// StoreOf is storeOf.
var StoreOf = storeOf

// ServeCalls is serveCalls.
var ServeCalls = serveCalls
