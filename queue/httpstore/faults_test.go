package httpstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/internal/wiretest"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/queue/storetest"
	"github.com/stintgo/stint/server"
)

// TestModel_BrokenConnections breaks connections in the middle of calls and of
// answers. The answers have to be those of a store whose connections do not break:
// whether a call was done before the connection broke or not, it is done once.
func TestModel_BrokenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t, rand: seeded.Rand(t)}
		storetest.Model(t, func(t *testing.T, cfg storetest.Config) storetest.Harness {
			t.Helper()
			n.start(memstore.New(memstore.Config(cfg)), server.Config{}, wiretest.ClientTime)
			return storetest.Harness{Store: n.open(httpstore.Config{Patience: time.Hour}), Remote: true}
		}, 400)
		if t.Logf("%d connections have broken", n.broken); n.broken < 50 {
			t.Error("too few connections break for this to show anything")
		}
	})
}

// TestC6_ServerAway: a call waits a little for a server that is not there, and
// then says so.
func TestC6_ServerAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &network{t: t}
		store := memstore.New(memstore.Config{})
		s := n.open(httpstore.Config{})
		began := time.Now()
		_, err := s.Stats(t.Context(), time.Now())
		if took := time.Since(began); !errors.Is(err, queue.ErrUnavailable) || took != time.Second {
			t.Errorf("without a server the answer is %v, after %s", err, took)
		}
		const says = "the server at http://localhost cannot be reached: connection refused"
		if text := err.Error(); !strings.Contains(text, says) {
			t.Errorf("it does not say what is wrong: %s", text)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = s.Stats(ctx, time.Now())
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) {
			t.Errorf("a call whose context ends meanwhile says %v", err)
		}
		time.AfterFunc(500*time.Millisecond, func() { n.start(store, server.Config{}) })
		if _, err := s.Stats(t.Context(), time.Now()); err != nil {
			t.Errorf("a server that comes in time is not found: %v", err)
		}
	})
}

// TestC6_ServerRestarts restarts a server again and again while workers use it: each task
// runs once.
func TestC6_ServerRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rnd := seeded.Rand(t)
		const tasks, restarts = 300, 30
		n := &network{t: t}
		store := memstore.New(memstore.Config{})
		stop := n.start(store, server.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 3)
		for range 3 {
			q := queue.New(n.open(httpstore.Config{}), queue.Config{})
			queue.Kind[int]("work").Handle(q, func(context.Context, *queue.Job[int]) error {
				time.Sleep(50 * time.Millisecond)
				return nil
			})
			go func() { ended <- q.Run(ctx, stint.New(3, stint.Config{})) }()
		}
		client := queue.New(n.open(httpstore.Config{}), queue.Config{})
		go func() {
			for i := range tasks {
				if _, err := queue.Kind[int]("work").Submit(ctx, client, i, queue.Options{}); err != nil {
					t.Errorf("submit task %d: %v", i, err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		for range restarts {
			time.Sleep(250*time.Millisecond + time.Duration(rnd.Int64N(int64(100*time.Millisecond))))
			stop()
			time.Sleep(time.Duration(rnd.Int64N(int64(300 * time.Millisecond))))
			stop = n.start(store, server.Config{})
		}
		eventually(t, "all tasks succeed", func() bool { return count(t, store, queue.Succeeded) == tasks })
		cancel()
		for range 3 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("Run returns %v", err)
			}
		}
		found, err := store.Find(t.Context(), queue.Filter{}, queue.Page{Limit: tasks})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range found {
			if len(task.Steps) != 3 {
				t.Errorf("a task was to be submitted, claimed and to succeed, and has lived %+v", task.Steps)
			}
		}
	})
}

// count is how many tasks of the default queue are in a state.
func count(t *testing.T, store queue.Store, state queue.State) int {
	t.Helper()
	st, err := store.Stats(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return st.Queues["default"].States[state]
}

// eventually waits until something is so. It is for bubbles, where waiting takes
// no time.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	for range 1000 {
		if so() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("it never comes that %s", what)
}
