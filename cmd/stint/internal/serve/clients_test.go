package serve_test

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// TestC5_SlowClientAtTheEnd: a client whose call does not end is disconnected, which is not an error of
// the server. The call is sent before the server reads it, so that it arrives within the timeout.
func TestC5_SlowClientAtTheEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	store := slow{memstore.New(memstore.Config{}), make(chan struct{}), make(chan struct{})}
	defer close(store.goOn)
	front := server.New(store, server.Config{Timeout: 100 * time.Millisecond}) // also for the header of the call
	conn, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET /v2/stats HTTP/1.1\r\nHost: s\r\nStint-Client: test\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- serve.ServeCalls(ctx, front, l, slog.New(slog.DiscardHandler)) }()
	<-store.begun
	stop()
	if err := <-served; err != nil {
		t.Errorf("the end is %v", err)
	}
	if n, err := conn.Read(make([]byte, 1)); err == nil {
		t.Errorf("the client is answered with %d bytes", n)
	}
}

// slow is a store whose Stats blocks until the test releases it.
type slow struct {
	memstore.Store
	begun, goOn chan struct{}
}

func (s slow) Stats(ctx context.Context, now time.Time) (queue.Stats, error) {
	s.begun <- struct{}{}
	<-s.goOn
	return s.Store.Stats(ctx, now)
}
