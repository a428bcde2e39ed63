package httpstore_test

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/wire"
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
	if _, _, err := store.Log(t.Context(), id, httpstore.LogPosition{}); !errors.Is(err, queue.ErrNotFound) {
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
		log, at, err := store.Log(t.Context(), id, httpstore.LogPosition{Offset: step.from})
		if err != nil {
			t.Fatalf("%q from %d: %v", step.text, step.from, err)
		}
		got, err := io.ReadAll(log)
		if err != nil || string(got) != step.want || at.Offset != step.at || at.File != "" {
			t.Errorf("%q from %d: %q from %+v, %v", step.text, step.from, got, at, err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A log that has become another file is read from its beginning, also if it is longer than
// the one before, and at once.
func TestC4_LogsThatAreOtherFiles(t *testing.T) {
	dir, file := t.TempDir(), ""
	mem := memstore.New(memstore.Config{})
	backend := server.New(mem, server.Config{
		Logs: os.DirFS(dir), LogFile: func(fs.File) string { return file },
		Follow: func(queue.ID) (<-chan struct{}, func()) { return nil, func() {} },
	})
	s := httptest.NewServer(backend)
	defer s.Close()
	defer backend.Close()
	store, err := httpstore.Open(s.URL, httpstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	id := new(queue.IDs).New(time.Now())
	task := queue.NewTask{ID: id, Spec: queue.Spec{Kind: "k"}}
	if _, err := store.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
		t.Fatal(err)
	}
	at := httpstore.LogPosition{}
	for _, step := range []struct {
		text, file string
		want       string
	}{
		{"one", "", "one"},
		{"one two", "a", " two"}, // as of a server that has become newer
		{"one two three", "a", " three"},
		{"new one two three four", "b", "new one two three four"},
		{"other one two three fo", "c", "other one two three fo"}, // as long as before
		{"other one two three for", "c", "r"},
		{"other one two three for this", "", " this"}, // of an older server
		{"new", "", "new"},
		{"", "d", ""},
		{"next", "d", "next"},
	} {
		file = step.file
		if err := os.WriteFile(filepath.Join(dir, server.LogName(id)), []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		log, from, err := store.FollowLog(t.Context(), id, at)
		if err != nil {
			t.Fatalf("%q: %v", step.text, err)
		}
		got, err := io.ReadAll(log)
		if err != nil || string(got) != step.want || from.File != step.file {
			t.Errorf("%q from %+v: %q from %+v, %v; want %q", step.text, at, got, from, err, step.want)
		}
		_ = log.Close()
		at = httpstore.LogPosition{Offset: from.Offset + int64(len(got)), File: from.File}
	}
	log, from, err := store.LogEnd(t.Context(), id, 2)
	if err != nil || from != (httpstore.LogPosition{Offset: 2, File: "d"}) {
		t.Fatalf("the end begins at %+v, %v", from, err)
	}
	_ = log.Close()
}

// The end of a log is read without its beginning.
func TestC4_EndsOfLogs(t *testing.T) {
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
	if _, _, err := store.LogEnd(t.Context(), id, 3); !errors.Is(err, queue.ErrNotFound) {
		t.Errorf("before there is one: %v", err)
	}
	if _, _, err := store.LogEnd(t.Context(), id, 0); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("no bytes: %v", err)
	}
	path := filepath.Join(dir, server.LogName(id))
	for _, step := range []struct {
		text string
		n    int64
		want string
		at   int64
	}{{"", 3, "", 0}, {"12", 3, "12", 0}, {"123", 3, "123", 0}, {"12345", 3, "345", 2}} {
		if err := os.WriteFile(path, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		log, at, err := store.LogEnd(t.Context(), id, step.n)
		if err != nil {
			t.Fatalf("%q: %v", step.text, err)
		}
		if got, err := io.ReadAll(log); err != nil || string(got) != step.want || at.Offset != step.at || at.File != "" {
			t.Errorf("the last %d of %q: %q from %+v, %v", step.n, step.text, got, at, err)
		}
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A log that breaks off in the middle is not reported as ended.
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
	log, _, err := store.Log(t.Context(), queue.ID{1}, httpstore.LogPosition{})
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
	if _, _, err := store.Log(t.Context(), queue.ID{1}, httpstore.LogPosition{}); !errors.Is(err, queue.ErrNotFound) ||
		!strings.Contains(err.Error(), "does not keep the logs") {
		t.Errorf("no logs: %v", err)
	}
	s.Close()
	if _, _, err := store.Log(t.Context(), queue.ID{1}, httpstore.LogPosition{}); !errors.Is(err, queue.ErrUnavailable) {
		t.Errorf("no server: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Log(t.Context(), queue.ID{1}, httpstore.LogPosition{}); !errors.Is(err, queue.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// A server that stops in the middle of a log is given up after the silence of 30 s, and a
// reader that takes its time is not.
func TestC6_LogOfAServerThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		stopped := make(chan struct{})
		hs := n.up(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "8")
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			<-stopped
		}))
		store, err := httpstore.Open("http://localhost", httpstore.Config{Transport: &http.Transport{DialContext: n.dial}})
		if err != nil {
			t.Fatal(err)
		}
		log, _, err := store.Log(t.Context(), queue.ID{1}, httpstore.LogPosition{})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		begun := time.Now()
		text := make([]byte, 4)
		if _, err := io.ReadFull(log, text); err != nil || string(text) != "half" {
			t.Errorf("after an hour of the reader's own %q is read, %v", text, err)
		}
		if _, err := log.Read(text); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("the read of a log that stops returns %v", err)
		}
		if took := time.Since(begun); took != 3*wire.Alive {
			t.Errorf("it was given up after %s", took)
		}
		_ = log.Close()
		close(stopped)
		n.down()
		_ = hs.Close()
		_ = store.Close()
	})
}

// A server that does not begin its answer is given up after the same silence, and for that reason.
func TestC6_LogOfAServerThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		stopped := make(chan struct{})
		hs := n.up(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stopped }))
		store, err := httpstore.Open("http://localhost", httpstore.Config{Transport: &http.Transport{DialContext: n.dial}})
		if err != nil {
			t.Fatal(err)
		}
		for name, read := range map[string]func() (io.ReadCloser, httpstore.LogPosition, error){
			"Log": func() (io.ReadCloser, httpstore.LogPosition, error) {
				return store.Log(t.Context(), queue.ID{1}, httpstore.LogPosition{})
			},
			"LogEnd": func() (io.ReadCloser, httpstore.LogPosition, error) {
				return store.LogEnd(t.Context(), queue.ID{1}, 1)
			},
		} {
			begun := time.Now()
			_, _, err := read()
			if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, httpstore.ErrNoAnswer) {
				t.Errorf("%s: %v", name, err)
			}
			if took := time.Since(begun); took != 3*wire.Alive {
				t.Errorf("%s was given up after %s", name, took)
			}
		}
		close(stopped)
		n.down()
		_ = hs.Close()
		_ = store.Close()
	})
}
