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

// Over HTTP/2, a stream that has nothing to write for longer than the timeout lasts.
func TestC11_IdleStreamOutlastsTheTimeout(t *testing.T) {
	const timeout = 100 * time.Millisecond
	store := memstore.New(memstore.Config{})
	h := server.New(store, server.Config{Timeout: timeout})
	defer h.Close()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+wire.Ready+"?"+wire.QueryQueue+"=q", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(wire.Client, "test")
	res, err := s.Client().Do(r)
	if err != nil || res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		t.Fatalf("a stream is answered %v, %v", res, err)
	}
	defer res.Body.Close()
	lines := bufio.NewReader(res.Body)
	signal := func() {
		t.Helper()
		for {
			text, err := lines.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream ends: %v", err)
			}
			if text != "\n" {
				return
			}
		}
	}
	signal() // a stream begins with one
	time.Sleep(3 * timeout)
	task := queue.NewTask{ID: new(queue.IDs).New(time.Now()), Spec: queue.Spec{Kind: "k", Options: queue.Options{Queue: "q"}}}
	if _, err := store.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
		t.Fatal(err)
	}
	signal()
}
