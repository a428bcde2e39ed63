package server_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// TestC4_LogsAreWaitedFor: a request for a log whose size the client knows is answered
// when the log grows, is replaced, or its task is finished, and otherwise after a
// timeout.
func TestC4_LogsAreWaitedFor(t *testing.T) {
	const known, later = "known", 3 * time.Second
	type world struct {
		write  func(text string)
		finish func()
		leave  func()
		close  func()
	}
	for name, row := range map[string]struct {
		begin string // the log; "" for none
		size  string
		then  func(w *world)
		after time.Duration
		code  int
	}{
		"another size":   {known, "3", nil, 0, 200},
		"any size":       {known, "", nil, 0, 200},
		"no number":      {known, "much", nil, 0, 400},
		"nothing":        {known, "5", nil, wire.Alive, 200},
		"no log":         {"", "0", nil, wire.Alive, 404},
		"more":           {known, "5", func(w *world) { w.write(known + known) }, later, 200},
		"less":           {known, "5", func(w *world) { w.write("new") }, later, 200},
		"a first part":   {"", "0", func(w *world) { w.write(known) }, later, 200},
		"as much":        {known, "5", func(w *world) { w.write("other") }, wire.Alive, 200},
		"the end":        {known, "5", func(w *world) { w.finish() }, later, 200},
		"a client's end": {known, "5", func(w *world) { w.leave() }, later, 200},
		"the server's":   {known, "5", func(w *world) { w.close() }, later, 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, dir, news := memstore.New(memstore.Config{}), t.TempDir(), make(chan struct{}, 1)
			watched := 0
			s := server.New(store, server.Config{
				Logs: os.DirFS(dir), MaxStreams: 1, Follow: func(queue.ID) (<-chan struct{}, func()) {
					watched++
					return news, func() { watched-- }
				},
			})
			id := new(queue.IDs).New(time.Now())
			task := queue.NewTask{ID: id, Spec: queue.Spec{Kind: "k"}}
			if _, err := store.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
				t.Fatal(err)
			}
			w := &world{finish: func() {
				c := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{id}}}
				if n, err := store.Command(t.Context(), time.Now(), c); n != 1 || err != nil {
					t.Error(n, err)
				}
				news <- struct{}{}
			}, close: s.Close}
			w.write = func(text string) {
				if err := os.WriteFile(filepath.Join(dir, server.LogName(id)), []byte(text), 0o600); err != nil {
					t.Error(err)
				}
				news <- struct{}{}
			}
			if row.begin != "" {
				w.write(row.begin)
			}
			r := request("GET", wire.Log+"?id="+id.String()+"&size="+row.size, "")
			ctx, leave := context.WithCancel(r.Context())
			defer leave()
			w.leave = leave
			if row.then != nil {
				time.AfterFunc(later, func() { row.then(w) })
			}
			began, rec := time.Now(), httptest.NewRecorder()
			s.ServeHTTP(rec, r.WithContext(ctx))
			if took := time.Since(began); took != row.after || rec.Code != row.code || watched != 0 {
				t.Errorf("%s: answered %d after %s, want %d after %s; %d still watch", name, rec.Code, took, row.code, row.after,
					watched)
			}
			time.Sleep(later)
			s.Close()
		})
	}
}

// TestC6_WaitsForLogsAreBounded: waiting requests count as streams until they end.
func TestC6_WaitsForLogsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		s := server.New(store, server.Config{
			Logs: os.DirFS(t.TempDir()), MaxStreams: 1,
			Follow: func(queue.ID) (<-chan struct{}, func()) { return nil, func() {} },
		})
		defer s.Close()
		id := new(queue.IDs).New(time.Now())
		task := queue.NewTask{ID: id, Spec: queue.Spec{Kind: "k"}}
		if _, err := store.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
			t.Fatal(err)
		}
		ask := func() int {
			status, _ := answered(t, s, request("GET", wire.Log+"?size=0&id="+id.String(), ""))
			return status
		}
		first := make(chan int)
		go func() { first <- ask() }()
		synctest.Wait()
		if status := ask(); status != 503 {
			t.Errorf("the second is answered %d", status)
		}
		if status := <-first; status != 404 {
			t.Errorf("the first is answered %d", status)
		}
		if status := ask(); status != 404 {
			t.Errorf("the third is answered %d", status)
		}
	})
}
