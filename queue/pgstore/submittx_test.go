package pgstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/pgstore"
)

// lines are what a logger has written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// connection connects to the server of the store.
func connection(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func prepared(ids *queue.IDs, s queue.Spec) queue.NewTask {
	if s.Kind == "" {
		s.Kind = "work"
	}
	return queue.NewTask{ID: ids.New(time.Now()), Spec: s}
}

// awaits waits until the store has n of some tasks, and returns them.
func awaits(t *testing.T, s queue.Store, ids []queue.ID, n int) []queue.Task {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for {
		found, err := s.Find(ctx, queue.Filter{IDs: ids}, queue.Page{Limit: len(ids), Durable: true})
		if err == nil && len(found) == n {
			return found
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("the store has %d of %d tasks: %v", len(found), n, err)
		}
	}
}

// TestC11_SubmitTx: the tasks of a transaction that commits are there, once and with all of
// their fields, and those of one that is rolled back are not.
func TestC11_SubmitTx(t *testing.T) {
	dsn, cfg := sharedServer(t), pgstore.Config{Schema: newSchema()}
	s := open(t, dsn, cfg)
	c := connection(t, dsn)
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var ids queue.IDs
	spec := queue.Spec{Payload: []byte("\x00payload\xff"), Options: queue.Options{
		Queue: "q", Key: "k", Labels: map[string]string{"a": "b"}, RunAt: time.Now().Add(time.Hour).UTC(),
	}}
	first, second := prepared(&ids, spec), prepared(&ids, queue.Spec{})
	third, never, other := prepared(&ids, queue.Spec{}), prepared(&ids, queue.Spec{}), prepared(&ids, queue.Spec{})
	second.After = []queue.ID{first.ID}

	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pgstore.SubmitTx(t.Context(), tx, cfg, first, second); err != nil {
		t.Fatal(err)
	}
	if err := pgstore.SubmitTx(t.Context(), tx, cfg, other); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	undone, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := pgstore.SubmitTx(t.Context(), undone, cfg, never); err != nil {
		t.Fatal(err)
	}
	if err := undone.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	std, err := db.BeginTx(t.Context(), nil)
	if err == nil {
		err = pgstore.SubmitSQL(t.Context(), std, cfg, third)
	}
	if err == nil {
		err = std.Commit()
	}
	if err != nil {
		t.Fatal(err)
	}
	all := []queue.ID{first.ID, second.ID, third.ID, other.ID, never.ID}
	found := awaits(t, s, all, 4)
	for i := range found {
		task := &found[i]
		switch task.ID {
		case never.ID:
			t.Error("the task of a transaction that was rolled back is there")
		case second.ID:
			if task.State != queue.Held {
				t.Errorf("a task that comes after another one is %s", task.State)
			}
		case first.ID:
			if !bytes.Equal(task.Payload, spec.Payload) || task.Queue != "q" || task.Key != "k" || task.Labels["a"] != "b" ||
				!task.RunAt.Equal(spec.RunAt) || task.State != queue.Scheduled {
				t.Errorf("the task is %+v", task)
			}
		}
	}
	var left int
	table := pgx.Identifier{cfg.Schema, "rows"}.Sanitize()
	err = c.QueryRow(t.Context(), `select count(*) from `+table+` where key >= 'i' and key < 'j'`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d submissions are left, %v", left, err)
	}
	if err := pgstore.SubmitTx(t.Context(), c, cfg, queue.NewTask{}); !errors.Is(err, queue.ErrInvalid) {
		t.Errorf("a task without an ID: %v", err)
	}
	big := prepared(&ids, queue.Spec{Payload: make([]byte, 2<<20)})
	if err := pgstore.SubmitTx(t.Context(), c, cfg, big); !errors.Is(err, queue.ErrTooLarge) {
		t.Errorf("a payload that is too large: %v", err)
	}
}

// TestC11_SubmitTxWhileTheLeaderChanges: what commits is accepted once, whichever process
// leads, also if none does.
func TestC11_SubmitTxWhileTheLeaderChanges(t *testing.T) {
	dsn, cfg, rnd := sharedServer(t), pgstore.Config{Schema: newSchema(), Lease: time.Minute}, seeded.Rand(t)
	s := open(t, dsn, cfg)
	c := connection(t, dsn)
	var ids queue.IDs
	var all []queue.ID
	committed := 0
	for range 40 {
		tx, err := c.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tasks := []queue.NewTask{prepared(&ids, queue.Spec{}), prepared(&ids, queue.Spec{})}
		if err := pgstore.SubmitTx(t.Context(), tx, cfg, tasks...); err != nil {
			t.Fatal(err)
		}
		all = append(all, tasks[0].ID, tasks[1].ID)
		if rnd.IntN(3) == 0 {
			err = tx.Rollback(t.Context())
		} else {
			committed += len(tasks)
			err = tx.Commit(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if rnd.IntN(4) > 0 {
			continue
		}
		if rnd.IntN(2) == 0 { // as if the process was killed
			execute(t, dsn, cfg.Schema, endLease)
		} else if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		s = open(t, dsn, cfg)
	}
	awaits(t, s, all, committed)
}

// TestC11_SubmitTxRefused: tasks of a full queue wait until there is room. Tasks that are
// refused are named in the log, once, and delay no others.
func TestC11_SubmitTxRefused(t *testing.T) {
	dsn, back := sharedServer(t), &lines{}
	cfg := pgstore.Config{Schema: newSchema(), Logger: slog.New(slog.NewTextHandler(back, nil))}
	s := open(t, dsn, cfg)
	c := connection(t, dsn)
	var ids queue.IDs
	limit := queue.Change{Set: queue.Settings{Pending: 1}}
	if err := s.Configure(t.Context(), time.Now(), "narrow", limit); err != nil {
		t.Fatal(err)
	}
	narrow := queue.Spec{Options: queue.Options{Queue: "narrow"}}
	one, two := prepared(&ids, narrow), prepared(&ids, narrow)
	orphan, fine := prepared(&ids, queue.Spec{}), prepared(&ids, queue.Spec{})
	orphan.After = []queue.ID{ids.New(time.Now())}
	for _, task := range []queue.NewTask{one, two, orphan, fine} {
		if err := pgstore.SubmitTx(t.Context(), c, cfg, task); err != nil {
			t.Fatal(err)
		}
	}
	awaits(t, s, []queue.ID{one.ID, two.ID, orphan.ID, fine.ID}, 2)
	cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{one.ID}}}
	if n, err := s.Command(t.Context(), time.Now(), cancel); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	awaits(t, s, []queue.ID{one.ID, two.ID, orphan.ID, fine.ID}, 3)
	if n := strings.Count(back.String(), "are refused"); n != 1 {
		t.Errorf("the log names refused tasks %d times:\n%s", n, back)
	}
}

// TestC11_SubmitTxPastAFullQueue: any number of submissions to a queue that is full hold none to
// another queue back, and are accepted in their order when there is room.
func TestC11_SubmitTxPastAFullQueue(t *testing.T) {
	dsn, cfg := sharedServer(t), pgstore.Config{Schema: newSchema()}
	s, c := open(t, dsn, cfg), connection(t, dsn)
	var ids queue.IDs
	limit := queue.Change{Set: queue.Settings{Pending: 1}}
	if err := s.Configure(t.Context(), time.Now(), "narrow", limit); err != nil {
		t.Fatal(err)
	}
	narrow := queue.Spec{Options: queue.Options{Queue: "narrow"}}
	first := prepared(&ids, narrow)
	if _, err := s.Submit(t.Context(), time.Now(), []queue.NewTask{first}); err != nil {
		t.Fatal(err)
	}
	const many = 2500 // more than the leader reads at a time
	tx, err := c.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var waiting []queue.ID
	for range many {
		task := prepared(&ids, narrow)
		waiting = append(waiting, task.ID)
		if err := pgstore.SubmitTx(t.Context(), tx, cfg, task); err != nil {
			t.Fatal(err)
		}
	}
	fine := prepared(&ids, queue.Spec{})
	if err := pgstore.SubmitTx(t.Context(), tx, cfg, fine); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaits(t, s, []queue.ID{fine.ID}, 1)
	last := first.ID
	for n := range 3 {
		cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{last}}}
		if n, err := s.Command(t.Context(), time.Now(), cancel); n != 1 || err != nil {
			t.Fatal(n, err)
		}
		found := awaits(t, s, waiting[:10], n+1)
		if last = found[n].ID; last != waiting[n] {
			t.Fatalf("the task that got room %d is not the oldest", n)
		}
	}
}

// TestC11_SubmitTxAfterABurst: the time for accepting submissions does not delay the next ones;
// looks that find nothing take a fifth of the time at most.
func TestC11_SubmitTxAfterABurst(t *testing.T) {
	for _, row := range []struct {
		useful     bool
		took, want time.Duration
	}{
		{useful: true, took: 10 * time.Second, want: 100 * time.Millisecond},
		{useful: true, took: time.Millisecond, want: 100 * time.Millisecond},
		{useful: false, took: time.Second, want: 4 * time.Second},
		{useful: false, took: time.Millisecond, want: 100 * time.Millisecond},
	} {
		if got := pgstore.InboxPause(row.useful, row.took); got != row.want {
			t.Errorf("after a look of %s, accepted: %t: a pause of %s, want %s", row.took, row.useful, got, row.want)
		}
	}
}
