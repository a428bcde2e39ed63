package serve_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue"
)

// A client that sends no body, though its header announces one, does not keep the connection of
// a request whose body is not read.
func TestE4_SilentBodiesOfRefusedRequests(t *testing.T) {
	for path, status := range map[string]int{"/files/": http.StatusUnauthorized, "/": http.StatusOK} {
		synctest.Test(t, func(t *testing.T) {
			silent := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})
			server := serve.UploadsServer("token", http.NotFoundHandler(), silent)
			l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
			go func() { _ = server.Serve(l) }()
			client, conn := net.Pipe()
			l.conns <- conn
			ended := time.AfterFunc(time.Minute, func() { _ = client.Close() })
			if _, err := io.WriteString(client, "POST "+path+" HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			answer, err := http.ReadResponse(bufio.NewReader(client), nil)
			if err != nil {
				t.Fatalf("%s: no answer within a minute: %v", path, err)
			}
			_, err = io.ReadAll(answer.Body)
			if err = errors.Join(err, answer.Body.Close()); err != nil || answer.StatusCode != status {
				t.Errorf("%s is answered with %s, %v", path, answer.Status, err)
			}
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
				t.Errorf("%s: the connection stays open: %v", path, err)
			}
			ended.Stop()
			if err := server.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A header without an end is refused at 64 KiB, before the token is looked at: every user of the
// machine can open thousands of connections to the address.
func TestE4_LargeHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := serve.UploadsServer("token", http.NotFoundHandler(), http.NotFoundHandler())
		l := &pipeListener{conns: make(chan net.Conn, 1), closed: make(chan struct{})}
		go func() { _ = server.Serve(l) }()
		client, conn := net.Pipe()
		l.conns <- conn
		go func() {
			line := "X: " + strings.Repeat("x", 1000) + "\r\n"
			// It is refused before its end.
			_, _ = io.WriteString(client, "GET / HTTP/1.1\r\nHost: h\r\n"+strings.Repeat(line, 100)+"\r\n")
		}()
		answer, err := http.ReadResponse(bufio.NewReader(client), nil)
		if err != nil {
			t.Fatal(err)
		}
		if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("a header of 100 kB is answered with %s", answer.Status)
		}
		_, err = io.Copy(io.Discard, client) // net/http closes the connection after half a second
		if err := errors.Join(err, answer.Body.Close(), client.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
}

// The scheme of the header Authorization may be written in any case; the token may not.
func TestE4_TokenOfUploads(t *testing.T) {
	files := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	h := serve.UploadsServer("Token", files, http.NotFoundHandler()).Handler
	for header, want := range map[string]int{
		"Bearer Token": http.StatusOK, "bearer Token": http.StatusOK, "BEARER Token": http.StatusOK,
		"Bearer token": http.StatusUnauthorized, "Basic Token": http.StatusUnauthorized,
		"Bearer": http.StatusUnauthorized, "": http.StatusUnauthorized,
	} {
		r := httptest.NewRequest(http.MethodHead, "/files/a", nil)
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("Authorization: %s is answered %d, want %d", header, w.Code, want)
		}
	}
}

// pipeListener accepts the connections of a channel.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { close(l.closed); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// A command for received files that the store cannot keep is refused at the start: it would run with another path.
func TestC6_ThenInDirectoryThatIsNotText(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	dir := t.TempDir()
	err := serve.Run(ctx, t.Context(), serve.Config{
		Dir: filepath.Join(dir, "tasks"), Jobs: 1, Queues: []string{queue.DefaultQueue}, Grace: 1, Patience: 1,
		Logger: slog.New(slog.DiscardHandler), Ready: func([]string) { end() },
		Uploads: serve.Uploads{Dir: filepath.Join(dir, "in\xff"), Listen: "127.0.0.1:0", Jobs: 1, Then: "true"},
	})
	if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(fmt.Sprint(err), "--then") {
		t.Errorf("it ends with %v", err)
	}
}
