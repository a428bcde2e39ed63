package server_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip is as http.RoundTripper says.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A log that another process keeps is answered as one of this process is, also if the request has conditions.
func TestC11_ForwardedLogsAreAnsweredAlike(t *testing.T) {
	store, dir, id := memstore.New(memstore.Config{}), t.TempDir(), new(queue.IDs).New(time.Now())
	path, changed := filepath.Join(dir, server.LogName(id)), time.Date(2026, time.November, 27, 10, 0, 0, 0, time.UTC)
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, changed, changed); err != nil {
		t.Fatal(err)
	}
	keeper := server.New(store, server.Config{Logs: os.DirFS(dir)})
	way := roundTrip(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		keeper.ServeLog(w, r)
		return w.Result(), nil
	})
	front := httptest.NewServer(server.New(store, server.Config{
		LogAt: func(context.Context, queue.ID) (http.RoundTripper, error) { return way, nil },
	}))
	defer front.Close()
	since := changed.Format(http.TimeFormat)
	for _, row := range []struct {
		method string
		head   map[string]string
		status int
		body   string
	}{
		{"GET", nil, 200, "hello"},
		{"HEAD", nil, 200, ""},
		{"GET", map[string]string{"Range": "bytes=1-2"}, 206, "el"},
		{"GET", map[string]string{"Range": "bytes=1-2", "If-Range": since}, 206, "el"},
		{"GET", map[string]string{"Range": "bytes=1-2", "If-Range": `"another"`}, 200, "hello"},
		{"GET", map[string]string{"If-Modified-Since": since}, 304, ""},
		{"GET", map[string]string{"If-Match": `"another"`}, 412, ""},
	} {
		r, err := http.NewRequestWithContext(t.Context(), row.method, front.URL+wire.Log+"?id="+id.String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(wire.Client, "test")
		for name, value := range row.head {
			r.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Errorf("%s %v: %v", row.method, row.head, err)
			continue
		}
		body, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != row.status || string(body) != row.body {
			t.Errorf("%s %v is answered %d %q, %v; want %d %q", row.method, row.head, res.StatusCode, body, err, row.status,
				row.body)
		}
		if got := res.Header.Get("Last-Modified"); row.status != 412 && got != since {
			t.Errorf("%s %v: Last-Modified is %q; want %q", row.method, row.head, got, since)
		}
		res.Body.Close()
	}
}
