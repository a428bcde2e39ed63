package serve_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
)

// A connection above the limit is answered with an error, and admitted once another is
// closed.
func TestC6_ConnectionsAreBounded(t *testing.T) {
	const most = 3
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l = serve.LimitConnections(most, slog.New(slog.DiscardHandler), l)[0]
	served := make(chan error, 1)
	hs := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	go func() { served <- hs.Serve(l) }()
	var idle []net.Conn
	for range most {
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		// A connection that was answered counts, and stays open.
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Read(make([]byte, 1000)); err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
	}
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) },
	}}
	defer client.CloseIdleConnections()
	for range 50 { // one at a time
		res, err := client.Post("http://h/", "text/plain", strings.NewReader(strings.Repeat("x", 10_000)))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "ulimit -n") {
			t.Fatalf("a connection too many is answered %s %s, %v", res.Status, text, err)
		}
		_ = res.Body.Close()
	}
	_ = idle[0].Close()
	for status := 0; status != http.StatusOK; { // until the server has seen the close
		res, err := client.Get("http://h/")
		if err != nil {
			t.Fatal(err)
		}
		status = res.StatusCode
		_ = res.Body.Close()
	}
	_ = hs.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// Clients of TCP addresses, which can connect without a token, cannot use up the
// connections of the socket, whatever the number of addresses.
func TestC6_ConnectionsByTCPLeaveSomeForTheSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	socket, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	listeners := []net.Listener{socket}
	for range 2 { // of --listen and --uploads-listen
		tcp, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, tcp)
	}
	const most = 8
	limited := serve.LimitConnections(most, slog.New(slog.DiscardHandler), listeners...)
	var serving sync.WaitGroup
	hs := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
	for _, l := range limited {
		serving.Go(func() { _ = hs.Serve(l) })
	}
	defer serving.Wait()
	defer func() { _ = hs.Close() }()
	status := func(network, address string) string {
		conn, err := net.Dial(network, address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(conn, answer); err != nil {
			t.Fatal(err)
		}
		return string(answer[len("HTTP/1.1 "):])
	}
	answers := make(map[string]int)
	for i := range most {
		answers[status("tcp", listeners[1+i%2].Addr().String())]++
	}
	if answers["200"] != most/4*3 || answers["503"] != most/4 {
		t.Errorf("%d connections by TCP are answered %v", most, answers)
	}
	for range most / 4 {
		if got := status("unix", path); got != "200" {
			t.Errorf("a connection by the socket is answered %s", got)
		}
	}
	if got := status("unix", path); got != "503" {
		t.Errorf("a connection too many is answered %s", got)
	}
}

// Whatever the limit on descriptors, commands have theirs first: connections get the
// rest, but never fewer than a minimum.
func TestC6_DescriptorsAreKeptForCommands(t *testing.T) {
	for _, test := range []struct {
		files uint64
		jobs  int
		want  int64
	}{
		{64, 1, 4}, {256, 4, 60}, {1024, 4, 348}, {1024, 100, 60}, {1024, 200, 4}, {1 << 20, 8, 4096}, {1<<64 - 1, 8, 4096},
	} {
		if got := serve.ConnectionsFor(test.files, test.jobs); got != test.want {
			t.Errorf("%d descriptors and %d commands: %d connections, want %d", test.files, test.jobs, got, test.want)
		}
	}
}
