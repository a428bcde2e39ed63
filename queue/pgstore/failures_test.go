package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stintgo/stint/internal/netfault"
	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/pgstore"
	"github.com/stintgo/stint/queue/storetest"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, dsn string, cfg pgstore.Config) *pgstore.Store {
	t.Helper()
	s, err := pgstore.Open(t.Context(), dsn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// submit submits one task.
func submit(ctx context.Context, s queue.Store, ids *queue.IDs) (queue.ID, error) {
	id := ids.New(now)
	return id, submitID(ctx, s, id)
}

func submitID(ctx context.Context, s queue.Store, id queue.ID) error {
	_, err := s.Submit(ctx, now, []queue.NewTask{{ID: id, Spec: queue.Spec{Kind: "k"}}})
	return err
}

// find returns how many tasks a store has, and reports IDs that it lacks.
func find(t *testing.T, s queue.Store, ids []queue.ID) int {
	t.Helper()
	found, err := s.Find(t.Context(), queue.Filter{}, queue.Page{Limit: 100_000})
	if err != nil {
		t.Fatal(err)
	}
	have := make(map[queue.ID]bool)
	for i := range found {
		have[found[i].ID] = true
	}
	for _, id := range ids {
		if !have[id] {
			t.Errorf("task %s was accepted, and is lost", id)
		}
	}
	return len(found)
}

// Of two processes the second one gets the name of the first, and leads when the lease of
// the first has ended. From then on the first one changes nothing.
func TestC11_OneProcessLeads(t *testing.T) {
	dsn, schema := sharedServer(t), newSchema()
	var ids queue.IDs
	first := open(t, dsn, pgstore.Config{Schema: schema, Name: "the first", Lease: time.Minute})
	kept, err := submit(t.Context(), first, &ids)
	if err != nil {
		t.Fatal(err)
	}
	_, err = pgstore.Open(t.Context(), dsn, pgstore.Config{Schema: schema})
	if !errors.Is(err, queue.ErrLed) || !strings.Contains(err.Error(), "the first leads") {
		t.Fatalf("the second process gets %v", err)
	}
	execute(t, dsn, schema, endLease)
	second := open(t, dsn, pgstore.Config{Schema: schema, Name: "the second"})
	if _, err := submit(t.Context(), first, &ids); !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, queue.ErrLed) {
		t.Errorf("a submit to the first process, which no longer leads: %v", err)
	}
	<-first.Lost()
	if n := find(t, second, []queue.ID{kept}); n != 1 {
		t.Errorf("the store has %d tasks, want 1", n)
	}
	if err := first.Close(); !errors.Is(err, queue.ErrLed) {
		t.Errorf("the first process closes with %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	third := open(t, dsn, pgstore.Config{Schema: schema}) // at once: the second has ended its lease
	if err := errors.Join(storetest.Check(t.Context(), third), third.Close()); err != nil {
		t.Error(err)
	}
}

// Processes that start at the same time create one set of tables, and one of them leads.
func TestC11_ManyProcessesStartAtOnce(t *testing.T) {
	for _, row := range []struct{ level, dsn string }{
		{"read committed", sharedServer(t)},
		{"repeatable read", newServer(t, "default_transaction_isolation=repeatable read").DSN},
	} {
		t.Run(row.level, func(t *testing.T) { manyStart(t, row.dsn) })
	}
}

func manyStart(t *testing.T, dsn string) {
	t.Helper()
	const processes = 12
	schema := newSchema()
	stores := make([]*pgstore.Store, processes)
	errs := make([]error, processes)
	var all sync.WaitGroup
	for i := range processes {
		all.Go(func() {
			stores[i], errs[i] = pgstore.Open(t.Context(), dsn, pgstore.Config{Schema: schema, Lease: time.Minute})
		})
	}
	all.Wait()
	led := 0
	for i, err := range errs {
		switch {
		case err == nil:
			led++
			if err := stores[i].Close(); err != nil {
				t.Error(err)
			}
		case !errors.Is(err, queue.ErrLed):
			t.Error(err)
		}
	}
	if led == 0 {
		t.Error("no process leads")
	}
}

// TestC11_TakeoverDuringABatch: a process that takes the lead while the leader before it writes a
// batch loses nothing that it accepts, at whichever isolation level transactions are by default.
func TestC11_TakeoverDuringABatch(t *testing.T) {
	for _, level := range levels {
		t.Run(string(level), func(t *testing.T) {
			takesOverDuringABatch(t, newServer(t, "default_transaction_isolation="+string(level)).DSN)
		})
	}
}

func takesOverDuringABatch(t *testing.T, dsn string) {
	t.Helper()
	schema := newSchema()
	first := open(t, dsn, pgstore.Config{Schema: schema, Lease: time.Minute})
	var ids queue.IDs
	a, err := submit(t.Context(), first, &ids)
	if err != nil {
		t.Fatal(err)
	}
	blocker, observer := connection(t, dsn), connection(t, dsn)
	tx := begins(t, blocker, pgx.ReadCommitted)
	table := pgx.Identifier{schema, "rows"}.Sanitize()
	if _, err := tx.Exec(t.Context(), "select from "+table+" where key >= 't' and key < 'u' for update"); err != nil {
		t.Fatal(err)
	}
	var both sync.WaitGroup
	both.Go(func() { // its batch waits for the transaction
		cancel := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{IDs: []queue.ID{a}}}
		if _, err := first.Command(t.Context(), now, cancel); err != nil {
			t.Error(err)
		}
	})
	waitsForLocks(t, observer, 1)
	execute(t, dsn, schema, endLease)
	var second *pgstore.Store
	both.Go(func() { // it waits for the batch
		if second, err = pgstore.Open(t.Context(), dsn, pgstore.Config{Schema: schema}); err != nil {
			t.Error(err)
		}
	})
	waitsForLocks(t, observer, 2)
	rollsBack(t, tx)
	both.Wait()
	if second == nil {
		t.FailNow()
	}
	b, err := submit(t.Context(), second, &ids)
	if err := errors.Join(err, second.Close()); err != nil {
		t.Fatal(err)
	}
	_ = first.Close() // it does not lead
	third := open(t, dsn, pgstore.Config{Schema: schema})
	find(t, third, []queue.ID{a, b})
	if err := third.Close(); err != nil {
		t.Error(err)
	}
}

// waitsForLocks waits until n sessions of the server wait for a lock.
func waitsForLocks(t *testing.T, c *pgx.Conn, n int) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for {
		var waiting int
		err := c.QueryRow(ctx, `select count(*) from pg_stat_activity where wait_event_type = 'Lock'`).Scan(&waiting)
		if err == nil && waiting == n {
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatalf("%d sessions wait for a lock, want %d: %v", waiting, n, err)
		}
	}
}

// While connections are cut at random, every submit that is answered is kept, and none is
// made twice.
func TestC11_ConnectionsAreCut(t *testing.T) {
	const callers, each = 8, 80
	dsn, schema := sharedServer(t), newSchema()
	p := newProxy(t, dsn)
	s := open(t, p.dsn, pgstore.Config{Schema: schema, Lease: time.Minute})
	answered := make(chan struct{}, 1) // a task; closed at the end
	var cutting, submitting sync.WaitGroup
	cutting.Go(func() { p.cutWhile(answered, seeded.Rand(t)) })
	var mu sync.Mutex
	var ids queue.IDs
	var accepted []queue.ID
	for range callers {
		submitting.Go(func() {
			for range each {
				id := ids.New(now)
				err := submitID(t.Context(), s, id)
				for errors.Is(err, queue.ErrUnavailable) { // as a client does
					err = submitID(t.Context(), s, id)
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				accepted = append(accepted, id)
				mu.Unlock()
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	submitting.Wait()
	close(answered)
	cutting.Wait()
	if p.cuts == 0 {
		t.Error("no connection was cut")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dsn, pgstore.Config{Schema: schema})
	if n := find(t, again, accepted); n != callers*each {
		t.Errorf("the store has %d tasks, want %d", n, callers*each)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// The server crashes again and again while tasks are submitted. Callers wait, or get
// ErrUnavailable after some seconds, and nothing that was answered is lost.
func TestC6_ServerCrashes(t *testing.T) {
	const callers, crashes = 4, 4
	server := newServer(t)
	s := open(t, server.DSN, pgstore.Config{Lease: time.Minute})
	stop := make(chan struct{})
	var submitting sync.WaitGroup
	var mu sync.Mutex
	var ids queue.IDs
	var accepted []queue.ID
	answered := make(chan struct{}, 1)
	for range callers {
		submitting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				id, err := submit(t.Context(), s, &ids)
				mu.Lock()
				if err == nil {
					accepted = append(accepted, id)
				} else if !errors.Is(err, queue.ErrUnavailable) {
					t.Error(err)
				}
				mu.Unlock()
				if err == nil {
					select {
					case answered <- struct{}{}:
					default:
					}
				}
			}
		})
	}
	for range crashes {
		for range 20 {
			<-answered
		}
		server.Kill()
		if err := server.Again(); err != nil {
			t.Fatal(err)
		}
	}
	<-answered
	close(stop)
	submitting.Wait()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, server.DSN, pgstore.Config{})
	find(t, again, accepted)
	if err := errors.Join(storetest.Check(t.Context(), again), again.Close()); err != nil {
		t.Error(err)
	}
}

// While the server is away, calls are answered after 3 s, with what is wrong.
func TestC6_ServerIsAway(t *testing.T) {
	server := newServer(t)
	back := make(signal, 1)
	s := open(t, server.DSN, pgstore.Config{Lease: time.Minute, Logger: slog.New(back)})
	var ids queue.IDs
	server.Kill()
	late, err := submit(t.Context(), s, &ids)
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "changes wait for it") {
		t.Errorf("a submit without a server: %v", err)
	}
	if err := server.Again(); err != nil {
		t.Fatal(err)
	}
	<-back
	if _, err := submit(t.Context(), s, &ids); err != nil {
		t.Error(err)
	}
	find(t, s, []queue.ID{late}) // what had been decided was written when the server was back
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestC6_LeasesWhileTheServerHangs: if it is not known whether transactions settle tasks, because the server does
// not answer, the log names the server, and says what has failed and why.
func TestC6_LeasesWhileTheServerHangs(t *testing.T) {
	dsn := sharedServer(t)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p, err := netfault.New(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = p.Addr()
	var log bytes.Buffer
	s := open(t, u.String(), pgstore.Config{
		Schema: newSchema(), Lease: time.Minute, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	began := time.Now()
	running(t, s, began)
	p.Set(netfault.Fault{Stall: true})
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	_, _ = s.Maintain(ctx, began.Add(2*settleLease), 0) // its own error does not matter here
	p.Set(netfault.Fault{})
	if err := errors.Join(s.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"leases that are over go on", "PostgreSQL at " + u.Host, "fence attempts: the server does not answer in time",
	} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log is %q, want %q in it", log.String(), want)
		}
	}
}

// signal is the handler of a log: it receives when calls of the server no longer fail.
type signal chan struct{}

func (s signal) Enabled(context.Context, slog.Level) bool { return true }
func (s signal) WithAttrs([]slog.Attr) slog.Handler       { return s }
func (s signal) WithGroup(string) slog.Handler            { return s }

func (s signal) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "no longer fail") {
		select {
		case s <- struct{}{}:
		default:
		}
	}
	return nil
}

// closing returns the address of a listener that closes each connection.
func closing(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var accepts sync.WaitGroup
	accepts.Go(func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Read(make([]byte, 1<<10)) // or it would be reset
			_ = c.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); accepts.Wait() })
	return l.Addr().String()
}

// What cannot be used is refused with the reason and the remedy, and without the password.
func TestC11_RefusedDatabases(t *testing.T) {
	server := newServer(t, "hba_file="+passwordFor(t, "guarded"))
	newer, foreign, others := newSchema(), newSchema(), newSchema()
	if err := open(t, server.DSN, pgstore.Config{Schema: newer}).Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, server.DSN, newer, `update %s.leader set format = 9`)
	execute(t, server.DSN, foreign, `create schema %[1]s; create table %[1]s.leader (name text)`)
	execute(t, server.DSN, others, `create schema %[1]s; create table %[1]s.rows (name text)`)
	execute(t, server.DSN, "", `create role reader login password 'secret' --%s`)
	execute(t, server.DSN, "", `create role guarded login password 'right' --%s`)
	with := func(change func(*url.URL)) string {
		u, err := url.Parse(server.DSN)
		if err != nil {
			t.Fatal(err)
		}
		change(u)
		return u.String()
	}
	closed := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}()
	absent := with(func(u *url.URL) { u.Host = closed })
	other := with(func(u *url.URL) { u.Host = closing(t) })
	for _, test := range []struct {
		name, dsn, schema string
		want              error
		says              string
	}{
		{"a newer format", server.DSN, newer, queue.ErrUnavailable, "format 9"},
		{"a table of another program", server.DSN, foreign, queue.ErrUnavailable, "choose another schema"},
		{"tables of another program", server.DSN, others, queue.ErrUnavailable, "choose another schema"},
		{
			"a missing user", with(func(u *url.URL) { u.User = url.UserPassword("nobody", "secret") }), "",
			queue.ErrUnavailable, "check the user",
		},
		{
			"a wrong password", with(func(u *url.URL) { u.User = url.UserPassword("guarded", "secret") }), "",
			queue.ErrUnavailable, "check the user and the password",
		},
		{
			"a missing database", with(func(u *url.URL) { u.Path = "/missing" }), "",
			queue.ErrUnavailable, "create the database",
		},
		{
			"a user without the privilege", with(func(u *url.URL) { u.User = url.UserPassword("reader", "secret") }),
			newSchema(), queue.ErrUnavailable, "CREATE SCHEMA",
		},
		{
			"a server that only reads",
			with(func(u *url.URL) { u.RawQuery += "&default_transaction_read_only=on" }), newSchema(),
			queue.ErrUnavailable, "use the primary server",
		},
		{
			"a server without TLS", with(func(u *url.URL) { u.RawQuery = "sslmode=require" }), "",
			queue.ErrUnavailable, "the server has no TLS",
		},
		{"another program", other, "", queue.ErrUnavailable, "is not PostgreSQL"},
		{"no server", absent, "", queue.ErrUnavailable, "start it, or correct the address"},
		{"no URL", "postgres://user:secret@host:port", "", queue.ErrInvalid, "URL"},
	} {
		limit := time.Minute // all but a server that is not there are refused at once
		if test.dsn == absent || test.dsn == other {
			limit = time.Second
		}
		ctx, stop := context.WithTimeout(t.Context(), limit)
		s, err := pgstore.Open(ctx, test.dsn, pgstore.Config{Schema: test.schema})
		stop()
		switch {
		case err == nil:
			t.Errorf("%s: opened", test.name)
			_ = s.Close()
		case !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.says) ||
			strings.Contains(err.Error(), "secret"):
			t.Errorf("%s: %v; want %v and %q", test.name, err, test.want, test.says)
		}
	}
	_, err := pgstore.Open(t.Context(), server.DSN, pgstore.Config{Lease: 1, MaxResult: -1})
	if !errors.Is(err, queue.ErrInvalid) ||
		!strings.Contains(err.Error(), "Lease") || !strings.Contains(err.Error(), "MaxResult") {
		t.Errorf("of two fields that are not valid: %v", err)
	}
}

// passwordFor returns a file as pg_hba.conf that asks one user for a password.
func passwordFor(t *testing.T, user string) string {
	t.Helper()
	database(t)
	path := filepath.Join(original.dir, "pg_hba.conf")
	text := "host all " + user + " 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// proxy passes connections to a server, and cuts them.
type proxy struct {
	dsn  string
	to   string
	cuts int // owned by cutWhile

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func newProxy(t *testing.T, dsn string) *proxy {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: u.Host, conns: make(map[net.Conn]bool)}
	u.Host = l.Addr().String()
	p.dsn = u.String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		for p.cut() > 0 {
		}
		running.Wait()
	})
	return p
}

func (p *proxy) serve(c net.Conn) {
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = c.Close()
		return
	}
	p.mu.Lock()
	p.conns[c], p.conns[s] = true, true
	p.mu.Unlock()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{s, c}, {c, s}} {
		both.Go(func() {
			_, _ = io.Copy(pair[0], pair[1])
			_, _ = pair[0].Close(), pair[1].Close()
		})
	}
	both.Wait()
	p.mu.Lock()
	delete(p.conns, c)
	delete(p.conns, s)
	p.mu.Unlock()
}

// cut cuts all connections, and returns their number.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.Close()
	}
	return len(p.conns)
}

// cutWhile cuts connections a random time after a task has been answered: without one in
// between, a slow machine would never finish a batch.
func (p *proxy) cutWhile(answered <-chan struct{}, random *rand.Rand) {
	for range answered {
		<-time.After(time.Duration(random.IntN(20)) * time.Millisecond)
		if p.cut() > 0 {
			p.cuts++
		}
	}
}
