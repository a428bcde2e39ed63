package serve

import (
	"context"
	"log/slog"
	"net"
	"testing"

	"github.com/stintgo/stint/queue"
)

// Logs are those of a server, to be looked after by hand.
type Logs struct{ *logs }

// OpenLogs opens the logs in a directory.
func OpenLogs(dir string, each, all int64) (Logs, error) {
	l, err := openLogs(dir, each, all, slog.New(slog.DiscardHandler))
	return Logs{l}, err
}

// Write adds an attempt that writes a text, if there is any, after something else.
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

// KeepTail keeps the end of an attempt that goes on when the server is killed.
func (l Logs) KeepTail(t *testing.T, id queue.ID, text string) {
	t.Helper()
	if err := (&logWriter{logs: l.logs, id: id}).KeepTail([]byte(text)); err != nil {
		t.Error(err)
	}
}

// Follow is how readers of a log are told.
func (l Logs) Follow(id queue.ID) (news <-chan struct{}, leave func()) { return l.readers.add(id) }

// Watch tells them until ctx ends.
func (l Logs) Watch(ctx context.Context, q *queue.Queue) { l.watch(ctx, q) }

// Tidy looks through them once.
func (l Logs) Tidy(ctx context.Context, q *queue.Queue) { l.tidy(ctx, q) }

// CheckLoopback is what an address has to pass.
var CheckLoopback = checkLoopback

// RetryWhile waits for a directory or an address.
var RetryWhile = retryWhile

// LimitConnections bounds the connections of listeners together.
func LimitConnections(most int64, logger *slog.Logger, listeners ...net.Listener) (limited []net.Listener) {
	c := newConnections(most, logger)
	for _, l := range listeners {
		limited = append(limited, c.limit(l))
	}
	return limited
}

// ConnectionsFor is how many connections a server may have.
var ConnectionsFor = connectionsFor
