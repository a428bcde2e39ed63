package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stintgo/stint/internal/dbserver"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/storetest"
)

// original is an empty database, which each server copies.
var original struct {
	once sync.Once
	dir  string // of it and of the servers
	made *dbserver.Postgres
	err  error
}

var shared struct {
	once   sync.Once
	server *dbserver.Server
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.server != nil {
		shared.server.Stop()
	}
	_ = os.RemoveAll(original.dir)
	os.Exit(code)
}

func database(tb testing.TB) *dbserver.Postgres {
	tb.Helper()
	original.once.Do(func() {
		original.dir, original.err = os.MkdirTemp("", "stint-pg-") //nolint:usetesting // of all tests
		if original.err == nil {                                   // so that the account of the server can enter it
			original.err = os.Chmod(original.dir, 0o755)
		}
		if original.err == nil {
			original.made, original.err = dbserver.NewPostgres(original.dir, func(string) error { return nil })
		}
	})
	if original.err != nil {
		tb.Fatal(original.err)
	}
	return original.made
}

// start starts a server on a copy of the database.
func start(tb testing.TB, settings ...string) (*dbserver.Server, error) {
	tb.Helper()
	made := database(tb)
	dir, err := os.MkdirTemp(original.dir, "server-") //nolint:usetesting // as above
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return nil, err
	}
	return made.Run(dir, settings...)
}

// newServer starts a server for one test.
func newServer(tb testing.TB, settings ...string) *dbserver.Server {
	tb.Helper()
	s, err := start(tb, settings...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Stop)
	return s
}

// sharedServer returns the server of the tests that do nothing to it. It does not sync.
func sharedServer(t *testing.T) string {
	t.Helper()
	shared.once.Do(func() { shared.server, shared.err = start(t, "fsync=off", "synchronous_commit=off") })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server.DSN
}

// schemas numbers the stores on the shared server.
var schemas atomic.Int64

func newSchema() string { return fmt.Sprintf("Test %d", schemas.Add(1)) } // a name that needs quotes

// execute runs a statement on a server, in which %s is the quoted schema.
func execute(t *testing.T, dsn, schema, statement string) {
	t.Helper()
	ctx := context.Background() // also in clean-ups
	c, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(ctx) }()
	if _, err := c.Exec(ctx, fmt.Sprintf(statement, pgx.Identifier{schema}.Sanitize())); err != nil {
		t.Fatal(err)
	}
}

// endLease ends the lease of the process that leads.
const endLease = `update %s.leader set until = 'epoch'`

// breakable is a database whose writes are refused from one of them on.
type breakable struct {
	dbrows.DB
	left *atomic.Int64 // writes until one fails, and all after it; 0: none does
}

func (b breakable) pass() error {
	for {
		switch left := b.left.Load(); {
		case left == 0:
			return nil
		case left == 1:
			return dbrows.ErrFenced
		case b.left.CompareAndSwap(left, left-1):
			return nil
		}
	}
}

func (b breakable) Apply(ctx context.Context, t dbrows.Term, changes []journal.Change) error {
	if err := b.pass(); err != nil {
		return err
	}
	return b.DB.Apply(ctx, t, changes)
}

func (b breakable) PutLeases(ctx context.Context, epoch uint32, put uint64, rows []dbrows.LeaseRow) error {
	if err := b.pass(); err != nil {
		return err
	}
	return b.DB.PutLeases(ctx, epoch, put, rows)
}

func harness(t *testing.T, cfg storetest.Config) storetest.Harness {
	t.Helper()
	return harnessAt(t, cfg, sharedServer(t))
}

// harnessAt is a store whose process is replaced by another one without an end.
func harnessAt(t *testing.T, cfg storetest.Config, dsn string) storetest.Harness {
	t.Helper()
	schema, left := newSchema(), new(atomic.Int64)
	open := func(t *testing.T) queue.Store {
		t.Helper()
		s, err := pgstore.OpenWrapped(t.Context(), dsn, pgstore.Config{
			Schema: schema, Lease: time.Minute, MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult,
			MaxCheckpoint: cfg.MaxCheckpoint, WatchBuffer: cfg.WatchBuffer,
		}, func(db dbrows.DB) dbrows.DB { return breakable{db, left} })
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil && !errors.Is(err, queue.ErrLed) {
				t.Error(err)
			}
		})
		return s
	}
	return storetest.Harness{
		Store: open(t), Durable: true, Remote: true,
		Reopen: func(t *testing.T) queue.Store {
			t.Helper()
			left.Store(0)
			execute(t, dsn, schema, endLease)
			return open(t)
		},
		Break: func(n int) { left.Store(int64(n)) },
	}
}

func TestStore(t *testing.T) { storetest.Run(t, harness) }

func TestModel_Store(t *testing.T) { storetest.Model(t, harness, 1000) }

// The store works through PgBouncer, which gives each transaction another session.
func TestModel_PgBouncer(t *testing.T) {
	dsn := bouncer(t)
	storetest.Model(t, func(t *testing.T, cfg storetest.Config) storetest.Harness {
		t.Helper()
		return harnessAt(t, cfg, dsn)
	}, 200)
}

// bouncer starts PgBouncer before the shared server.
func bouncer(t *testing.T) string {
	t.Helper()
	sharedServer(t)
	dir, err := os.MkdirTemp(original.dir, "bouncer-") //nolint:usetesting // the account of the server can enter it
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	dsn, stop, err := original.made.Bouncer(dir, shared.server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return dsn
}
