package httpstore_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/wire"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/memstore"
	"github.com/stintgo/stint/server"
)

// narrow has room for one item of 16 KiB in a call, or a few smaller ones.
var narrow = server.Config{MaxBody: 64 << 10, MaxItem: 16 << 10}

// works runs handlers on the tasks of a narrow server until the test ends. It returns the queue.
func works(t *testing.T, slots int, handlers map[string]queue.Handler) *queue.Queue {
	t.Helper()
	n := &network{t: t}
	n.start(memstore.New(memstore.Config{}), narrow)
	q := queue.New(n.open(httpstore.Config{}), queue.Config{Lease: 3 * time.Second})
	for kind, h := range handlers {
		q.Handle(kind, h)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- q.Run(ctx, stint.New(slots, stint.Config{})) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
	return q
}

// submitted submits tasks of a kind, and returns their IDs.
func submitted(t *testing.T, q *queue.Queue, kind string, n int) (ids []queue.ID) {
	t.Helper()
	for range n {
		task := q.Prepare(queue.Spec{Kind: kind, Options: queue.Options{MaxAttempts: 1, MaxCrashes: 1}})
		if _, err := q.Submit(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, task.ID)
	}
	return ids
}

// is checks the state of a task, and returns the task.
func is(t *testing.T, q *queue.Queue, id queue.ID, want queue.State) queue.Task {
	t.Helper()
	task, err := q.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if task.State != want {
		t.Errorf("a task of the kind %s is %s, want %s: %s", task.Kind, task.State, want, task.Error)
	}
	return task
}

// TestC6_LargeOutcomes: an outcome that has no room in a call costs the other tasks of its worker
// nothing, and ends its own.
func TestC6_LargeOutcomes(t *testing.T) {
	large := strings.Repeat("x", 32<<10)
	synctest.Test(t, func(t *testing.T) {
		q := works(t, 4, map[string]queue.Handler{
			"result": func(_ context.Context, a *queue.Attempt) error { return a.Return(large) },
			"error":  func(context.Context, *queue.Attempt) error { return errors.New(large) },
			"panic":  func(context.Context, *queue.Attempt) error { panic(large) },
			"saved":  func(_ context.Context, a *queue.Attempt) error { a.Save([]byte(large)); return nil },
			"small":  func(context.Context, *queue.Attempt) error { return nil },
		})
		for kind, says := range map[string]string{
			"result": queue.ErrTooLarge.Error(), "error": large[:queue.MaxReason], "panic": "panic: " + large[:1000],
			"saved": "",
		} {
			id := submitted(t, q, kind, 1)[0]
			small := submitted(t, q, "small", 20)
			time.Sleep(time.Minute)
			want := queue.Dead
			if kind == "saved" {
				want = queue.Succeeded
			}
			if task := is(t, q, id, want); !strings.HasPrefix(task.Error, says) {
				t.Errorf("the error of the kind %s is %.100q", kind, task.Error)
			}
			for _, id := range small {
				is(t, q, id, queue.Succeeded)
			}
		}
	})
}

// TestC6_OutcomesOfManyBytes: outcomes that have room in a call each, and not all together, are
// settled.
func TestC6_OutcomesOfManyBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tasks = 64
		var here atomic.Int64
		together := make(chan struct{})
		q := works(t, tasks, map[string]queue.Handler{"k": func(_ context.Context, a *queue.Attempt) error {
			if here.Add(1) == tasks {
				close(together)
			}
			<-together
			return a.Return(strings.Repeat("x", 10<<10))
		}})
		ids := submitted(t, q, "k", tasks)
		time.Sleep(time.Minute)
		for _, id := range ids {
			is(t, q, id, queue.Succeeded)
		}
	})
}

// counting answers calls of Settle and Heartbeat, and counts the calls and their items.
type counting struct {
	*testing.T
	calls, items int
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if len(body) > 64<<20 {
		c.Errorf("a call of %d bytes", len(body))
	}
	items := strings.Count(string(body), `"token":`)
	if wire.IsPacked(r.URL.Path) {
		var in wire.SettleCall
		if err := wire.Unpack(body, &in, int64(len(body))); err != nil {
			return nil, err
		}
		items = len(in.Outcomes)
	}
	c.calls++
	c.items += items
	answer := `{"answers":[` + strings.TrimSuffix(strings.Repeat("null,", items), ",") + `]}`
	return fixedAnswer{http.StatusOK, wire.JSON, answer}.RoundTrip(r)
}

// TestC6_CallsInPartsOfBytes: outcomes and heartbeats that are too many bytes for a call are sent
// in parts.
func TestC6_CallsInPartsOfBytes(t *testing.T) {
	const items = 5
	large := make([]byte, 10<<20)
	outcomes, heartbeats := make([]queue.Outcome, items), make([]queue.Heartbeat, items)
	for i := range items {
		outcomes[i].Kind, outcomes[i].Result, heartbeats[i].Checkpoint = queue.OutcomeSuccess, large, large
	}
	settle, heartbeat := &counting{T: t}, &counting{T: t}
	s := open(t, "http://127.0.0.1:1", httpstore.Config{Transport: settle})
	answers, err := s.Settle(t.Context(), time.Now(), outcomes)
	if err != nil || len(answers) != items || settle.items != items || settle.calls != 3 {
		t.Errorf("%d outcomes have %d answers in %d calls, %v", settle.items, len(answers), settle.calls, err)
	}
	s = open(t, "http://127.0.0.1:1", httpstore.Config{Transport: heartbeat})
	got, err := s.Heartbeat(t.Context(), time.Now(), queue.Worker{}, heartbeats)
	if err != nil || len(got) != items || heartbeat.items != items || heartbeat.calls != 3 {
		t.Errorf("%d heartbeats have %d answers in %d calls, %v", heartbeat.items, len(got), heartbeat.calls, err)
	}
}

// TestC8_LargeHeartbeats: a report that has no room in a call, or many that have room each and not
// together, cost no task its lease. A checkpoint that has no room ends its own task.
func TestC8_LargeHeartbeats(t *testing.T) {
	large := strings.Repeat("x", 32<<10)
	runs := func(report func(*queue.Attempt)) queue.Handler {
		return func(ctx context.Context, a *queue.Attempt) error {
			report(a)
			select {
			case <-time.After(30 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		q := works(t, 40, map[string]queue.Handler{
			"note":  runs(func(a *queue.Attempt) { a.Report(queue.Progress{Done: 1, Note: large}) }),
			"saved": runs(func(a *queue.Attempt) { a.Save([]byte(large[:8<<10])) }),
			"large": runs(func(a *queue.Attempt) { a.Save([]byte(large)) }),
		})
		note, saved, large := submitted(t, q, "note", 1), submitted(t, q, "saved", 30), submitted(t, q, "large", 2)
		time.Sleep(20 * time.Second)
		for _, id := range saved {
			if task := is(t, q, id, queue.Running); len(task.Checkpoint) != 8<<10 {
				t.Errorf("the store has a checkpoint of %d bytes", len(task.Checkpoint))
			}
		}
		if task := is(t, q, note[0], queue.Running); task.Progress.Done != 1 || len(task.Progress.Note) < queue.MaxReason {
			t.Errorf("the store has the progress %d with a note of %d bytes", task.Progress.Done, len(task.Progress.Note))
		}
		time.Sleep(20 * time.Second)
		for _, id := range append(note, saved...) {
			is(t, q, id, queue.Succeeded)
		}
		for _, id := range large {
			if task := is(t, q, id, queue.Dead); !strings.Contains(task.Error, queue.ErrTooLarge.Error()) {
				t.Errorf("error %.100q", task.Error)
			}
		}
	})
}
