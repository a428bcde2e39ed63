package server_test

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// unwatchable is a store whose watches never begin.
type unwatchable struct {
	queue.Store
	asked chan struct{}
}

func (u unwatchable) Watch(ctx context.Context, _ func(), _ func(queue.Event)) error {
	close(u.asked)
	<-ctx.Done()
	return context.Cause(ctx)
}

// TestC5_CloseEndsAWatchThatHasNotBegun: Close does not wait until the store has begun a
// watch.
func TestC5_CloseEndsAWatchThatHasNotBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server.New(unwatchable{memstore.New(memstore.Config{}), make(chan struct{})}, server.Config{})
		r := request(http.MethodGet, wire.Watch, "")
		ctx, stop := context.WithCancel(r.Context())
		defer stop()
		w, answered := httptest.NewRecorder(), make(chan struct{})
		go func() {
			defer close(answered)
			s.ServeHTTP(w, r.WithContext(ctx))
		}()
		synctest.Wait()
		s.Close()
		synctest.Wait()
		select {
		case <-answered:
		default:
			t.Fatal("the watch goes on")
		}
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("it is answered %d %s", w.Code, w.Body)
		}
	})
}

// TestC5_ServeEndsAWatchThatHasNotBegun: neither does the end of a Serve.
func TestC5_ServeEndsAWatchThatHasNotBegun(t *testing.T) {
	store := unwatchable{memstore.New(memstore.Config{}), make(chan struct{})}
	s := server.New(store, server.Config{})
	defer s.Close()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served, status := make(chan error, 1), make(chan int, 1)
	go func() { served <- s.Serve(ctx, l) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+wire.Watch, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(wire.Client, "test")
	go func() {
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Error(err)
			status <- 0
			return
		}
		defer res.Body.Close()
		status <- res.StatusCode
	}()
	<-store.asked
	stop()
	if err := <-served; err != nil {
		t.Errorf("Serve waited until it gave up: %v", err)
	}
	if got := <-status; got != http.StatusServiceUnavailable {
		t.Errorf("the watch is answered %d", got)
	}
}

// oneConn is a listener with one connection.
type oneConn struct {
	conn   chan net.Conn
	closed context.Context //nolint:containedctx // ends with the listener
	close  context.CancelFunc
}

func (l oneConn) Addr() net.Addr { return &net.TCPAddr{} }

func (l oneConn) Close() error {
	l.close()
	return nil
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

// Over HTTP/2, a stream that has nothing to write for longer than the timeout lasts.
func TestC11_IdleStreamOutlastsTheTimeout(t *testing.T) {
	const timeout = time.Second // less than wire.Alive
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		h := server.New(store, server.Config{Timeout: timeout})
		defer h.Close()
		var http2 http.Protocols
		http2.SetUnencryptedHTTP2(true)
		client, served := net.Pipe()
		l := oneConn{conn: make(chan net.Conn, 1)}
		l.closed, l.close = context.WithCancel(t.Context())
		l.conn <- served
		s := http.Server{Handler: h, Protocols: &http2}
		go func() { _ = s.Serve(l) }()
		defer s.Close()
		dial := func(context.Context, string, string) (net.Conn, error) { return client, nil }
		transport := &http.Transport{Protocols: &http2, DialContext: dial}
		defer transport.CloseIdleConnections()
		r := request(http.MethodGet, wire.Ready+"?"+wire.QueryQueue+"=", "")
		r.URL.Scheme, r.URL.Host, r.RequestURI, r.Body = "http", "localhost", "", nil
		res, err := transport.RoundTrip(r)
		if err != nil || res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
			t.Fatalf("a stream is answered %v, %v", res, err)
		}
		defer res.Body.Close()
		lines := bufio.NewReader(res.Body)
		signal := func() {
			t.Helper()
			for text := "\n"; text == "\n"; {
				if text, err = lines.ReadString('\n'); err != nil {
					t.Fatalf("the stream ends: %v", err)
				}
			}
		}
		signal() // a stream begins with one
		time.Sleep(3 * timeout)
		withQueue(t, store)
		signal()
	})
}
