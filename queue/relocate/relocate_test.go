package relocate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/dbserver"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/redisstore"
	"github.com/stintgo/stint/queue/relocate"
)

// site is a store that can be opened, and moved from and to.
type site struct {
	relocate.Place
	open func(ctx context.Context) (queue.Store, error)
}

var postgres struct {
	once sync.Once
	dsn  string
	stop func()
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if postgres.stop != nil {
		postgres.stop()
	}
	_ = os.RemoveAll(postgres.dir)
	os.Exit(code)
}

func directory(t *testing.T) site {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "store")
	place, err := filestore.Place(dir, filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return site{place, func(context.Context) (queue.Store, error) { return filestore.Open(dir, filestore.Config{}) }}
}

func inPostgres(t *testing.T) site {
	t.Helper()
	postgres.once.Do(func() {
		postgres.dir, postgres.err = os.MkdirTemp("", "stint-pg-") //nolint:usetesting // of all tests
		if postgres.err == nil {                                   // so that the account of the server can enter it
			postgres.err = os.Chmod(postgres.dir, 0o755)
		}
		var p *dbserver.Postgres
		if postgres.err == nil {
			p, postgres.err = dbserver.NewPostgres(postgres.dir, func(string) error { return nil })
		}
		if postgres.err == nil {
			postgres.dsn, postgres.stop, postgres.err = p.Start(filepath.Join(postgres.dir, "server"))
		}
	})
	if postgres.err != nil {
		t.Fatal(postgres.err)
	}
	cfg := pgstore.Config{Schema: fmt.Sprintf("move %s %d", t.Name(), schemas.next())}
	place, err := pgstore.Place(postgres.dsn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return site{place, func(ctx context.Context) (queue.Store, error) { return pgstore.Open(ctx, postgres.dsn, cfg) }}
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

var schemas counter

func inRedis(t *testing.T) site {
	t.Helper()
	if err := dbserver.NeedRedis(); err != nil {
		t.Fatal(err)
	}
	address, stop, err := dbserver.Redis(t.TempDir(), dbserver.Always)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	url := "redis://" + address
	place, err := redisstore.Place(url, redisstore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return site{place, func(ctx context.Context) (queue.Store, error) {
		return redisstore.Open(ctx, url, redisstore.Config{})
	}}
}

func (s site) mustOpen(t *testing.T) queue.Store {
	t.Helper()
	store, err := s.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// use fills a store with tasks in all states, settings and a schedule. It leaves one task
// running at a worker in another process, and returns its outcome.
func use(t *testing.T, store queue.Store) (settles queue.Outcome) {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	q := queue.New(store, queue.Config{})
	submit := func(o queue.Options, kind string) queue.ID {
		t.Helper()
		r, err := queue.Kind[string](kind).Submit(ctx, q, "payload of "+kind, o)
		check(err)
		return r.ID
	}
	done, dead := submit(queue.Options{}, "done"), submit(queue.Options{}, "dead")
	claimed, err := store.Claim(ctx, now, queue.Claim{
		Worker: "w", Queue: queue.DefaultQueue, Kinds: []string{"done", "dead"}, Max: 9, Lease: time.Minute,
	})
	check(err)
	var outcomes []queue.Outcome
	for _, c := range claimed.Tasks {
		o := queue.Outcome{ID: c.ID, Token: c.Lease.Token, Kind: queue.OutcomeSuccess, Result: []byte(`"ok"`)}
		if c.ID == dead {
			o = queue.Outcome{ID: c.ID, Token: c.Lease.Token, Kind: queue.OutcomeFailure, Permanent: true, Error: "no"}
		}
		outcomes = append(outcomes, o)
	}
	_, err = store.Settle(ctx, now, outcomes)
	check(err)
	submit(queue.Options{Unique: "only"}, "waits")
	submit(queue.Options{RunAt: now.Add(time.Hour)}, "delayed")
	submit(queue.Options{After: []queue.ID{submit(queue.Options{}, "first")}}, "second")
	submit(queue.Options{After: []queue.ID{done}, Key: "k"}, "keyed")
	check(q.Pause(ctx, submit(queue.Options{}, "paused")))
	check(q.Configure(ctx, queue.DefaultQueue, queue.Settings{Max: 7}))
	check(q.Schedule(ctx, queue.Schedule{
		Name: "nightly", Cron: "0 3 * * *", Task: queue.Spec{Kind: "night", Payload: []byte("1")},
	}))
	submit(queue.Options{}, "running")
	claimed, err = store.Claim(ctx, now, queue.Claim{
		Worker: "far", Queue: queue.DefaultQueue, Kinds: []string{"running"}, Max: 1, Lease: time.Minute, Remote: true,
	})
	check(err)
	return queue.Outcome{ID: claimed.Tasks[0].ID, Token: claimed.Tasks[0].Lease.Token, Kind: queue.OutcomeSuccess}
}

// content is what a store answers about its tasks, settings and schedules.
func content(t *testing.T, store queue.Store) map[string]string {
	t.Helper()
	q := queue.New(store, queue.Config{})
	all := make(map[string]string)
	for task, err := range q.Find(t.Context(), queue.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		task.Changed = task.Changed.Round(time.Second)
		all[task.ID.String()] = text(t, task)
	}
	stats, err := store.Stats(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for name, of := range stats.Queues {
		all["queue "+name] = text(t, of.States)
	}
	schedules, err := q.Schedules(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all["schedules"] = text(t, schedules)
	settings, err := store.Settings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all["settings"] = text(t, settings)
	return all
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func same(t *testing.T, got, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s:\n%s, was\n%s", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d answers, and were %d", len(got), len(want))
	}
}

// TestC11_MoveBetweenStores moves a store through all kinds of stores, one after the other,
// and continues its tasks in the last.
func TestC11_MoveBetweenStores(t *testing.T) {
	at := directory(t)
	store := at.mustOpen(t)
	settles := use(t, store)
	want := content(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, next := range []site{inPostgres(t), inRedis(t), inPostgres(t), directory(t), inRedis(t), directory(t)} {
		moved, err := relocate.Move(t.Context(), at.Place, next.Place)
		if err != nil {
			t.Fatal(err)
		}
		if moved.Tasks != 9 || moved.Bytes == 0 {
			t.Errorf("moved %+v", moved)
		}
		_, err = at.open(t.Context())
		if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), next.Name) {
			t.Errorf("the old store opens with %v", err)
		}
		if _, err := relocate.Move(t.Context(), at.Place, next.Place); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("a second move returns %v", err)
		}
		store = next.mustOpen(t)
		same(t, content(t, store), want)
		at = next
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	store = at.mustOpen(t)
	defer func() { _ = store.Close() }()
	finish(t, store, settles)
}

// finish settles what ran in the first store, and works on the rest.
func finish(t *testing.T, store queue.Store, settles queue.Outcome) {
	t.Helper()
	now := time.Now()
	errs, err := store.Settle(t.Context(), now, []queue.Outcome{settles})
	if err = errors.Join(append(errs, err)...); err != nil {
		t.Errorf("the lease from before the moves: %v", err)
	}
	q := queue.New(store, queue.Config{})
	r, err := queue.Kind[string]("waits").Submit(t.Context(), q, "again", queue.Options{Unique: "only"})
	if err != nil || !r.Existing {
		t.Errorf("a unique name returns %+v, %v", r, err)
	}
	claim := queue.Claim{
		Worker: "w", Queue: queue.DefaultQueue, Kinds: []string{"waits", "first", "second", "keyed"}, Max: 9,
		Lease: time.Minute,
	}
	var kinds []string
	for range 2 {
		claimed, err := store.Claim(t.Context(), now, claim)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range claimed.Tasks {
			if kinds = append(kinds, c.Kind); c.Lease.Token <= settles.Token {
				t.Errorf("token %d after %d", c.Lease.Token, settles.Token)
			}
			errs, err := store.Settle(t.Context(), now, []queue.Outcome{
				{ID: c.ID, Token: c.Lease.Token, Kind: queue.OutcomeSuccess},
			})
			if err = errors.Join(append(errs, err)...); err != nil {
				t.Error(err)
			}
		}
	}
	if want := []string{"waits", "keyed", "first", "second"}; !slices.Equal(kinds, want) {
		t.Errorf("started %v, want %v", kinds, want)
	}
}

// TestC11_MoveOfNoStore: a move from a store that does not exist makes neither that store nor the
// new one, so the same name is refused again.
func TestC11_MoveOfNoStore(t *testing.T) {
	for name, from := range map[string]site{
		"a directory": directory(t), "PostgreSQL": inPostgres(t), "Redis": inRedis(t),
	} {
		to := directory(t)
		for range 2 {
			_, err := relocate.Move(t.Context(), from.Place, to.Place)
			if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "there is no store") {
				t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := to.Open(t.Context(), false); !errors.Is(err, queue.ErrInvalid) {
			t.Errorf("%s: the new store is made: %v", name, err)
		}
	}
}
