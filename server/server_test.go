package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// request returns a request to a server at a TCP address of the loopback interface.
func request(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 7117}
	r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, net.Addr(local)))
	r.Host = "localhost:7117"
	r.Header.Set(wire.Client, "test")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	return r
}

// answered executes a request.
func answered(t *testing.T, h http.Handler, r *http.Request) (status int, code string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code == http.StatusOK {
		return w.Code, ""
	}
	var p wire.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Header().Get("Content-Type") != wire.ProblemJSON {
		t.Errorf("%s %s answers %d %s, which is no problem", r.Method, r.URL, w.Code, w.Body)
	}
	if p.Status != w.Code || p.Code == "" || p.Title == "" || p.Detail == "" {
		t.Errorf("%s %s answers %d with the problem %+v", r.Method, r.URL, w.Code, p)
	}
	return w.Code, p.Code
}

const claim = `{"worker":"w","kinds":["k"],"max":1,"lease_ns":1000000000}`

// FuzzCalls sends any bytes to any call: it is executed or refused, never an internal
// error.
func FuzzCalls(f *testing.F) {
	paths := []string{
		wire.Submit, wire.Claim, wire.Settle, wire.Heartbeat, wire.Command, wire.Find, wire.Configure, wire.Pause,
		wire.Reschedule, wire.Maintain,
	}
	for _, path := range []string{wire.Submit, wire.Claim, wire.Settle} {
		packed, _ := wire.PackedPath(path)
		paths = append(paths, packed)
	}
	for i, body := range []string{
		`{"tasks":[{"id":"01890a5d-ac96-774b-bcce-b302099a8057","kind":"k","payload":"AA==","tier":"high"}]}`, claim,
		`{"outcomes":[{"id":"01890a5d-ac96-774b-bcce-b302099a8057","token":"1","on":"succeed"}]}`,
		`{"worker":{"name":"w","kinds":{"q":["k"]}},` +
			`"heartbeats":[{"id":"01890a5d-ac96-774b-bcce-b302099a8057","token":"1"}]}`,
		`{"do":"pause","filter":{"states":["waiting"],"labels":{"a":"b"}}}`, `{"page":{"limit":-1}}`,
		`{"queue":"q","settings":{"rate":{"per_second":1e300},"caps":{"low":1}}}`, `{"queue":"q","pause":{"by":"b"}}`,
		`{"name":"s","to":{"name":"s","cron":"x","task":{"kind":"k"}}}`, `{"limit":-1}`,
		"\x01\x02\x02\x01\x01k", "\x0d\x01w\x02\x01k\x02", "\x01\x02\x04\x01",
	} {
		f.Add(i, body)
	}
	f.Fuzz(func(t *testing.T, call int, body string) {
		s := server.New(memstore.New(memstore.Config{}), server.Config{})
		path := paths[uint(call)%uint(len(paths))]
		if status, code := answered(t, s, request("POST", path, body)); status >= 500 {
			t.Errorf("%s of %q is answered %d %s", path, body, status, code)
		}
	})
}

// TestC5_ServeEnds: Serve answers the calls in progress, ends the streams, and returns.
func TestC5_ServeEnds(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	store := slow{memstore.New(memstore.Config{}), make(chan struct{}), make(chan struct{})}
	s := server.New(store, server.Config{})
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()

	client, err := httpstore.Open("unix:"+socket, httpstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ready, _ := client.Listen("")
	<-ready // the stream has begun
	ended := make(chan error, 2)
	go func() { ended <- client.Watch(t.Context(), func() {}, func(queue.Event) {}) }()
	go func() {
		_, err := client.Stats(t.Context(), time.Now())
		ended <- err
	}()
	<-store.begun
	stop()
	if err := <-ended; !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("a watch ends with %v", err)
	}
	close(store.goOn)
	if err := <-ended; err != nil {
		t.Errorf("a call that had begun is answered %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("Serve returns %v", err)
	}
	s.Close()
	if _, err := client.Settings(t.Context()); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("afterwards, a call is answered %v", err)
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

// listening opens a stream.
func listening(t *testing.T, url string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set(wire.Client, "test")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestC6_StreamsAreBounded: one stream more than MaxStreams is refused, and admitted when
// another has ended.
func TestC6_StreamsAreBounded(t *testing.T) {
	s := server.New(memstore.New(memstore.Config{}), server.Config{MaxStreams: 2})
	hs := httptest.NewServer(s)
	defer hs.Close()
	defer s.Close()
	get := func() *http.Response {
		res := listening(t, hs.URL+wire.Ready+"?queue=a")
		if _, err := io.ReadFull(res.Body, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		return res
	}
	first := get()
	defer get().Body.Close()
	third := get()
	if third.Body.Close(); third.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("the third is answered %d", third.StatusCode)
	}
	first.Body.Close()
	for status := 0; status != http.StatusOK; {
		res := get()
		status = res.StatusCode
		res.Body.Close()
	}
}

// TestC1_OneQueueHasOneName: a listener for the queue without a name receives signals of
// "default".
func TestC1_OneQueueHasOneName(t *testing.T) {
	store := memstore.New(memstore.Config{})
	s := server.New(store, server.Config{})
	hs := httptest.NewServer(s)
	defer hs.Close()
	defer s.Close()
	res := listening(t, hs.URL+wire.Ready+"?queue=")
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	receive := func() {
		t.Helper()
		for lines.Scan() {
			if text := lines.Text(); text == `{"queue":"default"}` {
				return
			} else if text != "" {
				t.Fatalf("the stream has %s", text)
			}
		}
		t.Fatalf("the stream ends: %v", lines.Err())
	}
	receive() // the initial signal
	for range 100 {
		submitted(t, store, 1)
		receive()
	}
}

// TestC5_ServesTwoListeners: the end of one Serve ends the streams of its own listener
// only.
func TestC5_ServesTwoListeners(t *testing.T) {
	store := memstore.New(memstore.Config{})
	s := server.New(store, server.Config{})
	defer s.Close()
	type side struct {
		client *httpstore.Store
		stop   context.CancelFunc
		served chan error
		ended  chan error
	}
	sides := make([]side, 2)
	for i := range sides {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		d := side{nil, stop, make(chan error, 1), make(chan error, 1)}
		go func() { d.served <- s.Serve(ctx, l) }()
		client, err := httpstore.Open("http://"+l.Addr().String(), httpstore.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		d.client = client
		received := make(chan struct{}, 1)
		go func() {
			d.ended <- client.Watch(t.Context(), func() {}, func(queue.Event) {
				select {
				case received <- struct{}{}:
				default:
				}
			})
		}()
		for begun := false; !begun; {
			submitted(t, store, 1)
			select {
			case <-received:
				begun = true
			case <-time.After(10 * time.Millisecond):
			}
		}
		sides[i] = d
	}
	sides[0].stop()
	if err := <-sides[0].served; err != nil {
		t.Errorf("the first Serve returns %v", err)
	}
	if err := <-sides[0].ended; !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("its stream ends with %v", err)
	}
	ready, _ := sides[1].client.Listen("")
	<-ready
	submitted(t, store, 1)
	<-ready // the server is not closed yet
	select {
	case err := <-sides[1].ended:
		t.Errorf("the other stream ends with %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	sides[1].stop()
	if err := <-sides[1].served; err != nil {
		t.Errorf("the second Serve returns %v", err)
	}
}
