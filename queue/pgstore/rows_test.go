package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
	"github.com/stintgo/stint/queue/pgstore"
)

// modes are the ways in which pgx sends statements.
var modes = []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"}

// messageMost is the limit of a statement in these tests, in bytes.
const messageMost = 1000

func connect(t *testing.T, dsn, schema string) dbrows.DB {
	t.Helper()
	db, err := pgstore.OpenDB(t.Context(), dsn, pgstore.Config{Schema: schema}, messageMost)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// lead makes a DB the leader, and returns its term without Vacant.
func lead(t *testing.T, db dbrows.DB, name string) dbrows.Term {
	t.Helper()
	term, err := db.Lead(t.Context(), queue.Leader{Name: name, Contact: "at " + name}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	term.Vacant = 0
	return term
}

// TestC11_Vacant: a leader knows how long no process had led, also if the former one has
// resigned; in a new schema none has led since the beginning of time.
func TestC11_Vacant(t *testing.T) {
	schema := newSchema()
	a, b := connect(t, sharedServer(t), schema), connect(t, sharedServer(t), schema)
	first, err := a.Lead(t.Context(), queue.Leader{Name: "a"}, time.Minute)
	if err != nil || first.Vacant < 24*time.Hour {
		t.Errorf("the first leader: %v, %v", first, err)
	}
	if err := a.Resign(t.Context(), first.Epoch); err != nil {
		t.Fatal(err)
	}
	next, err := b.Lead(t.Context(), queue.Leader{Name: "b"}, time.Minute)
	if err != nil || next.Vacant > time.Hour {
		t.Errorf("the next leader: %v, %v", next, err)
	}
}

// value returns the value of a key, "" if there is none.
func value(t *testing.T, db dbrows.DB, key string) string {
	t.Helper()
	v, err := db.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(v)
}

// checkReads reads the keys y, which is empty, z and z1, of a byte each, and some that are not
// there; and all keys in order.
func checkReads(t *testing.T, db dbrows.DB) {
	t.Helper()
	for most, want := range map[int][]string{1: {"-", `""`, "-", `"3"`}, 100: {"-", `""`, "-", `"3"`, `"4"`}} {
		found, err := db.ReadKeys(t.Context(), []string{"x", "y", "y1", "z", "z1", "z2"}, most)
		var got []string
		for _, value := range found {
			if value == nil {
				got = append(got, "-")
			} else {
				got = append(got, fmt.Sprintf("%q", value))
			}
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("ReadKeys, most %d bytes: %q, %v; want %q", most, got, err, want)
		}
	}
	var scanned []string
	err := db.Scan(t.Context(), "a", "zz", false, func(key string, value []byte) bool {
		scanned = append(scanned, key+string(value))
		return true
	})
	if want := []string{"y", "z3", "z14"}; err != nil || !slices.Equal(scanned, want) {
		t.Errorf("Scan: %q, %v; want %q", scanned, err, want)
	}
}

// What package dbrows asks of a database, in each mode of the driver, and through PgBouncer
// in those that need no session.
func TestC11_Rows(t *testing.T) {
	through := map[string]string{"the server": sharedServer(t)}
	for _, mode := range modes {
		through[mode] = sharedServer(t) + "&default_query_exec_mode=" + mode
	}
	pooled := bouncer(t)
	through["PgBouncer"] = pooled
	for _, mode := range []string{"exec", "simple_protocol"} {
		through["PgBouncer, "+mode] = pooled + "&default_query_exec_mode=" + mode
	}
	for name, dsn := range through {
		t.Run(name, func(t *testing.T) {
			schema := newSchema()
			a, b := connect(t, dsn, schema), connect(t, dsn, schema)
			term := lead(t, a, "a")
			if again := lead(t, a, "a"); again != term {
				t.Errorf("Lead of the leader returns %v after %v", again, term)
			}
			var led *queue.LedError
			_, err := b.Lead(t.Context(), queue.Leader{Name: "b"}, time.Minute)
			if !errors.As(err, &led) || led.Name != "a" || led.Contact != "at a" || led.Left <= 0 {
				t.Errorf("Lead while another process leads: %v", err)
			}
			applies := func(db dbrows.DB, term dbrows.Term, changes ...journal.Change) error {
				return db.Apply(t.Context(), term, changes)
			}
			next := dbrows.Term{Epoch: term.Epoch, Batch: term.Batch + 1}
			set := []journal.Change{{Key: "x", Value: []byte("1")}, {Key: "y", Value: []byte{}}}
			if err := applies(a, next, set...); err != nil {
				t.Fatal(err)
			}
			for name, wrong := range map[string]dbrows.Term{
				"the same batch": next, "a gap": {Epoch: next.Epoch, Batch: next.Batch + 2},
				"another epoch": {Epoch: next.Epoch + 1, Batch: next.Batch + 1},
			} {
				if err := applies(a, wrong, journal.Change{Key: "x", Value: []byte("2")}, journal.Change{Key: "y"}); err == nil {
					t.Errorf("Apply of %s is made", name)
				}
			}
			if v, err := a.Get(t.Context(), "y"); value(t, a, "x") != "1" || v == nil || err != nil {
				t.Errorf("a refused batch has changed something: %q, %v, %v", value(t, a, "x"), v, err)
			}
			next.Batch++
			if err := applies(a, next, journal.Change{Key: "x"}, journal.Change{Key: "z", Value: []byte("3")},
				journal.Change{Key: "z1", Value: []byte("4")}); err != nil {
				t.Fatal(err)
			}
			if now, err := a.Term(t.Context()); now != next || err != nil || value(t, a, "x") != "" || value(t, a, "z") != "3" {
				t.Errorf("Term is %v, %v, want %v; x is %q, z is %q", now, err, next, value(t, a, "x"), value(t, a, "z"))
			}
			checkReads(t, a)
			checkLeases(t, a, next.Epoch)

			execute(t, sharedServer(t), schema, endLease)
			if now := lead(t, b, "b"); now != (dbrows.Term{Epoch: next.Epoch + 1, Batch: next.Batch}) {
				t.Errorf("the next leader has the term %v after %v", now, next)
			}
			next.Batch++
			_, termErr := a.Term(t.Context())
			for name, err := range map[string]error{
				"Term": termErr, "Renew": a.Renew(t.Context(), next.Epoch, time.Minute),
				"PutLeases": a.PutLeases(t.Context(), next.Epoch, 9, []dbrows.LeaseRow{{Number: 1, Entries: []byte("late")}}),
			} {
				if !errors.Is(err, dbrows.ErrFenced) {
					t.Errorf("%s of a leader that was replaced: %v", name, err)
				}
			}
			if err := applies(a, next, set...); err == nil || value(t, b, "x") != "" {
				t.Error("a leader that was replaced has changed a row")
			}
		})
	}
}

// checkLeases checks that a row of the lease log replaces only one of an earlier put.
func checkLeases(t *testing.T, db dbrows.DB, epoch uint32) {
	t.Helper()
	for _, put := range []uint64{2, 1, 3} {
		entry := fmt.Append(nil, put)
		rows := []dbrows.LeaseRow{{Number: int(1 + put%2), Entries: entry}, {Number: 3, Entries: entry}}
		if err := db.PutLeases(t.Context(), epoch, put, rows); err != nil {
			t.Fatal(err)
		}
	}
	got := make(map[int]string)
	if err := db.Leases(t.Context(), func(row dbrows.LeaseRow) { got[row.Number] = string(row.Entries) }); err != nil {
		t.Fatal(err)
	}
	if got[1] != "2" || got[2] != "3" || got[3] != "3" || len(got) != 3 {
		t.Errorf("the lease log is %v", got)
	}
}

// A batch of more than one message is made as a whole, or not at all.
func TestC11_LargeBatch(t *testing.T) {
	db := connect(t, sharedServer(t), newSchema())
	next := lead(t, db, "a")
	var changes []journal.Change
	for i := range 100 { // 30 messages
		changes = append(changes, journal.Change{Key: fmt.Sprint("k", i), Value: make([]byte, 300)})
	}
	if err := db.Apply(t.Context(), dbrows.Term{Epoch: next.Epoch, Batch: next.Batch + 2}, changes); err == nil {
		t.Error("a batch after a gap is made")
	}
	if value(t, db, "k0") != "" {
		t.Error("a part of a refused batch is made")
	}
	next.Batch++
	if err := db.Apply(t.Context(), next, changes); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := db.Scan(t.Context(), "k", "l", false, func(string, []byte) bool { n++; return true })
	if n != 100 || err != nil {
		t.Errorf("%d of 100 rows, error %v", n, err)
	}
}

// Statements are prepared where a connection has one session, and their plans are good for a
// table of any size and cheap to begin. Through PgBouncer they are not prepared: the session
// would be another one the next time.
func TestC11_PreparedStatements(t *testing.T) {
	for name, c := range map[string]struct {
		dsn      string
		prepared bool
		allowed  string // table scans and compiled plans
	}{
		"the server":            {sharedServer(t), true, "off"},
		"PgBouncer":             {bouncer(t), false, "on"},
		"the URL says how":      {sharedServer(t) + "&default_query_exec_mode=cache_describe", false, "on"},
		"the URL says prepared": {sharedServer(t) + "&default_query_exec_mode=cache_statement", true, "on"},
	} {
		t.Run(name, func(t *testing.T) {
			db := connect(t, c.dsn, newSchema())
			lead(t, db, "a")
			prepared, scans, jit, err := pgstore.Session(t.Context(), db)
			if err != nil {
				t.Fatal(err)
			}
			if prepared > 0 != c.prepared || scans != c.allowed || jit != c.allowed {
				t.Errorf("%d statements are prepared, enable_seqscan is %s, jit %s", prepared, scans, jit)
			}
		})
	}
}

// The table of the rows is vacuumed when enough rows have changed, also through PgBouncer.
func TestC11_RowsAreVacuumed(t *testing.T) {
	for name, dsn := range map[string]string{"direct": sharedServer(t), "bouncer": bouncer(t)} {
		schema := newSchema()
		db := connect(t, dsn, schema)
		term := lead(t, db, "a")
		vacuums := func() (n int) {
			c, err := pgx.Connect(t.Context(), sharedServer(t))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close(context.Background()) }()
			err = c.QueryRow(t.Context(), `select vacuum_count from pg_stat_user_tables
				where schemaname = $1 and relname = 'rows'`, schema).Scan(&n)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		change := func(times int) {
			for range times {
				term.Batch++
				if err := db.Apply(t.Context(), term, []journal.Change{{Key: "k", Value: []byte("v")}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		pgstore.VacuumAfter(db, 20)
		change(19)
		if n := vacuums(); n != 0 {
			t.Errorf("%s: %d vacuums after 19 changes", name, n)
		}
		change(1)
		for end := time.Now().Add(time.Minute); vacuums() == 0; <-time.After(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: no vacuum a minute after 20 changes", name)
			}
		}
		// The connection of the VACUUM is none of the pool's, and finds nothing out about sessions.
		if mode := pgstore.VacuumMode(db); mode != pgx.QueryExecModeCacheDescribe {
			t.Errorf("%s: the connection of the VACUUM uses %v", name, mode)
		}
	}
}

// A server that has lost a confirmed batch, or the leader, is not written to.
func TestC11_LostChanges(t *testing.T) {
	for name, lose := range map[string]string{
		"a batch":    `update %s.batch set number = number - 1`,
		"the leader": `update %s.leader set epoch = epoch - 1, id = 'before'`,
	} {
		dsn, schema := sharedServer(t), newSchema()
		s := open(t, dsn, pgstore.Config{Schema: schema, Lease: time.Minute})
		var ids queue.IDs
		if _, err := submit(t.Context(), s, &ids); err != nil {
			t.Fatal(err)
		}
		execute(t, dsn, schema, lose)
		_, err := submit(t.Context(), s, &ids)
		if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, dbrows.ErrLost) {
			t.Errorf("a submit after the server has lost %s: %v", name, err)
		}
		<-s.Lost()
		_ = s.Close()
	}
}

// While the disk of the server is full, calls are answered with the remedy; then what had
// been decided is written. A trigger stands for the disk.
func TestC6_ServerDiskIsFull(t *testing.T) {
	dsn, schema := sharedServer(t), newSchema()
	back := make(signal, 1)
	s := open(t, dsn, pgstore.Config{Schema: schema, Lease: time.Minute, Logger: slog.New(back)})
	execute(t, dsn, schema, `create function %[1]s.full() returns trigger language plpgsql as
		$$ begin raise exception 'no space left on device' using errcode = 'disk_full'; end $$;
		create trigger full_disk before insert on %[1]s.rows execute function %[1]s.full()`)
	var ids queue.IDs
	late, err := submit(t.Context(), s, &ids)
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "make room") {
		t.Errorf("a submit to a full disk: %v", err)
	}
	execute(t, dsn, schema, `drop trigger full_disk on %s.rows`)
	<-back
	find(t, s, []queue.ID{late})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A lease that was taken or given up before the clock of the server was set back keeps no other process
// from leading, unless its leader has renewed it since.
func TestC11_LeaseOfAClockThatWasSetBack(t *testing.T) {
	dsn, schema := sharedServer(t), newSchema()
	a, b := connect(t, dsn, schema), connect(t, dsn, schema)
	term := lead(t, a, "a")
	setBack := func() { execute(t, dsn, schema, `update %s.leader set until = until + interval '1 day'`) }
	setBack()
	if err := a.Renew(t.Context(), term.Epoch, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Lead(t.Context(), queue.Leader{Name: "b"}, time.Minute); !errors.Is(err, queue.ErrLed) {
		t.Errorf("after a renewal another process leads: %v", err)
	}
	setBack()
	next, err := b.Lead(t.Context(), queue.Leader{Name: "b"}, time.Minute)
	if err != nil || next.Epoch != term.Epoch+1 || next.Vacant != 0 {
		t.Errorf("no other process leads: %+v, %v", next, err)
	}
	if err := a.Renew(t.Context(), term.Epoch, time.Minute); !errors.Is(err, dbrows.ErrFenced) {
		t.Errorf("the leader before renews its lease: %v", err)
	}
}

// Tables of an earlier format are converted, but not while a process of the earlier version
// leads.
func TestC11_Migration(t *testing.T) {
	dsn, schema := sharedServer(t), newSchema()
	var ids queue.IDs
	before := open(t, dsn, pgstore.Config{Schema: schema, Name: "the earlier version", Lease: time.Minute})
	id, err := submit(t.Context(), before, &ids)
	if err != nil {
		t.Fatal(err)
	}
	openNext := func() (*pgstore.Store, error) {
		return pgstore.OpenNext(t.Context(), dsn, pgstore.Config{Schema: schema},
			`create table $schema.more (n int); update $schema.leader set format = 3`)
	}
	if _, err := openNext(); !errors.Is(err, queue.ErrLed) {
		t.Errorf("the next version, while the earlier one leads: %v", err)
	}
	if _, err := submit(t.Context(), before, &ids); err != nil {
		t.Error(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := openNext()
	if err != nil {
		t.Fatal(err)
	}
	find(t, after, []queue.ID{id})
	execute(t, dsn, schema, `insert into %s.more values (1)`)
	if err := after.Close(); err != nil {
		t.Error(err)
	}
}

// Tables of format 1, in which a row of the lease log has one entry, get the present format from
// the first leader.
func TestC11_TablesOfFormat1(t *testing.T) {
	dsn, schema := sharedServer(t), newSchema()
	var ids queue.IDs
	before := open(t, dsn, pgstore.Config{Schema: schema})
	id, err := submit(t.Context(), before, &ids)
	if err != nil {
		t.Fatal(err)
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, dsn, schema, `update %s.leader set format = 1`)
	after := open(t, dsn, pgstore.Config{Schema: schema})
	find(t, after, []queue.ID{id})
	// It divides by zero if the format is another one: programs of format 1 would open the store.
	execute(t, dsn, schema, `select 1 / count(*) from %s.leader where format = 2`)
	if err := after.Close(); err != nil {
		t.Error(err)
	}
}

// A batch that is visible, but not on the synchronous replica that the server has to
// wait for, is not confirmed.
func TestC6_ReplicaIsAway(t *testing.T) {
	server := newServer(t)
	db := connect(t, server.DSN, "stint")
	next := lead(t, db, "a")
	set := func(standby string) {
		execute(t, server.DSN, "", "alter system set synchronous_standby_names = '"+standby+"' --%s")
		execute(t, server.DSN, "", "select pg_reload_conf() --%s")
	}
	brief := func(do func(context.Context) error) error {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		return do(ctx)
	}
	set("missing")
	next.Batch++
	change := []journal.Change{{Key: "x", Value: []byte("1")}}
	for { // until the server has read its configuration
		if err := brief(func(ctx context.Context) error { return db.Apply(ctx, next, change) }); err != nil {
			break
		}
		next.Batch++
	}
	term := func(ctx context.Context) error { _, err := db.Term(ctx); return err }
	for range 2 { // also when the first Term is visible
		if err := brief(term); err == nil {
			t.Error("Term confirms a batch that the replica does not have")
		}
	}
	set("")
	if now, err := db.Term(t.Context()); now != next || err != nil {
		t.Errorf("Term is %v, %v when the server waits no longer, want %v", now, err, next)
	}
}
