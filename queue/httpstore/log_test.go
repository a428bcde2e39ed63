package httpstore_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// The log of a task is read from any byte on, while it grows, and after it has
// lost its beginning.
func TestC4_LogsOfTasks(t *testing.T) {
	dir := t.TempDir()
	backend := server.New(memstore.New(memstore.Config{}), server.Config{Logs: os.DirFS(dir)})
	s := httptest.NewServer(backend)
	defer s.Close()
	defer backend.Close()
	store, err := httpstore.Open(s.URL, httpstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	id := queue.ID{1}
	if _, _, err := store.Log(t.Context(), id, 0); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("before there is one: %v", err)
	}
	path := filepath.Join(dir, server.LogName(id))
	for _, step := range []struct {
		text string
		from int64
		want string
		at   int64
	}{
		{"", 0, "", 0},
		{"<html>one", 0, "<html>one", 0},
		{"<html>one two", 9, " two", 9},
		{"<html>one two", 13, "", 13},
		{"short", 13, "short", 0},
		{"short", 5, "", 5},
		{"", 5, "", 0},
		{"short", 0, "short", 0},
	} {
		if err := os.WriteFile(path, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		log, at, err := store.Log(t.Context(), id, step.from)
		if err != nil {
			t.Fatalf("%q from %d: %v", step.text, step.from, err)
		}
		got, err := io.ReadAll(log)
		if err != nil || string(got) != step.want || at != step.at {
			t.Errorf("%q from %d: %q from %d, %v", step.text, step.from, got, at, err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A log that breaks off in the middle is no log that has ended.
func TestC4_LogsThatBreakOff(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	}))
	defer s.Close()
	store, err := httpstore.Open(s.URL, httpstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	log, _, err := store.Log(t.Context(), queue.ID{1}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if got, err := io.ReadAll(log); string(got) != "half" || !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("%q, %v", got, err)
	}
}

// A server that keeps no logs says so, and one that is away as well.
func TestC4_LogsThatAreNotThere(t *testing.T) {
	backend := server.New(memstore.New(memstore.Config{}), server.Config{})
	s := httptest.NewServer(backend)
	defer backend.Close()
	store, err := httpstore.Open(s.URL, httpstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Log(t.Context(), queue.ID{1}, 0); !errors.Is(err, queue.ErrNotFound) ||
		!strings.Contains(err.Error(), "keeps no logs") {
		t.Errorf("no logs: %v", err)
	}
	s.Close()
	if _, _, err := store.Log(t.Context(), queue.ID{1}, 0); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("no server: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Log(t.Context(), queue.ID{1}, 0); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
