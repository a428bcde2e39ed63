//go:build linux

package main_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sched "github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// TestC4_PauseWaitOfATaskThatIsNotPaused: pause --wait does not return while a task runs that was cancelled
// meanwhile, and says what has become of the task. A task that was resumed meanwhile ends the wait.
func TestC4_PauseWaitOfATaskThatIsNotPaused(t *testing.T) {
	for name, row := range map[string]struct {
		meanwhile func(*queue.Queue, context.Context, queue.ID) error
		early     bool // meanwhile is before the first call of Find
		finds     int  // calls of Find while the task runs after that
		says      string
	}{
		"cancelled":         {(*queue.Queue).Cancel, false, 4, " cannot be paused: its state is cancelled\n"},
		"cancelled at once": {(*queue.Queue).Cancel, true, 4, " cannot be paused: its state is cancelled\n"},
		"resumed":           {(*queue.Queue).Resume, false, 0, " was resumed\n"},
		"resumed at once":   {(*queue.Queue).Resume, true, 0, " was resumed\n"},
	} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New(memstore.Config{})
			q := queue.New(store, queue.Config{})
			begun, stopped, end := make(chan struct{}), make(chan struct{}), make(chan struct{})
			const kind queue.Kind[int] = "kind"
			kind.Handle(q, func(ctx context.Context, _ *queue.Job[int]) error {
				close(begun)
				<-ctx.Done()
				close(stopped)
				<-end
				return context.Cause(ctx)
			})
			ctx, stop := context.WithCancel(t.Context())
			var running sync.WaitGroup
			running.Go(func() { _ = q.Run(ctx, sched.New(1, sched.Config{})) })
			defer running.Wait()
			defer stop()
			finish := sync.OnceFunc(func() { close(end) })
			defer finish()
			s := server.New(store, server.Config{})
			defer s.Close()
			asks, free := make(chan bool), make(chan struct{}) // calls of Find: whether they are durable
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/find") {
					body, err := io.ReadAll(r.Body)
					if err != nil {
						t.Error(err)
					}
					r.Body = io.NopCloser(bytes.NewReader(body))
					select {
					case asks <- bytes.Contains(body, []byte(`"durable":true`)):
					case <-free:
					}
				}
				s.ServeHTTP(w, r)
			}))
			defer front.Close()
			letAll := sync.OnceFunc(func() { close(free) })
			defer letAll()

			task, err := kind.Submit(ctx, q, 1, queue.Options{})
			if err != nil {
				t.Fatal(err)
			}
			<-begun
			change := func() {
				if err := row.meanwhile(q, ctx, task.ID); err != nil {
					t.Error(err)
				}
			}
			cmd := command(t, "pause", "--wait", "--server", front.URL, task.ID.String())
			ended := make(chan result, 1)
			go func() { ended <- runCmd(t, cmd, "") }()
			asked := func() (durable bool) {
				select {
				case durable = <-asks:
				case r := <-ended:
					t.Fatalf("pause --wait has returned while the task runs: %+v", r)
				}
				return durable
			}
			<-stopped
			if row.early {
				change()
			}
			asked() // which tasks are ordered to end
			if durable := asked(); !durable {
				t.Error("the state of the task that is waited for is not read durably")
			}
			if !row.early {
				change()
			}
			for range row.finds {
				asked()
			}
			letAll()
			if row.finds > 0 {
				finish()
			}
			r := <-ended
			r.want(t, "0 tasks paused\n", "task "+task.ID.String()+row.says, 1)
		})
	}
}
