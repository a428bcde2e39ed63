package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/logthrottle"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/machine"
	"github.com/stintgo/stint/queue/internal/router"
)

// Config has the limits of a store. The zero value is a good default.
type Config struct {
	// Schema is the name of the schema of the tables, "stint" by default: stores with
	// different schemas share a database.
	Schema string
	// Name is the name of this process for others that want to lead; "" is host:pid.
	Name string
	// Contact is given to others that want to lead, in [queue.LedError]. It may hold a secret:
	// a process that can read the database can read the tasks as well.
	Contact string
	// Lease is how long another process must wait to lead if this one ends without having
	// closed the store; 0 means 2 s. A process that cannot reach the database for that time may
	// be replaced. It is at least 100 ms, and at most a minute.
	Lease time.Duration
	// Patience is how long Open tries to reach the server; 0 means 5 s.
	Patience time.Duration

	MaxPayload    int // bytes; 0 means 1 MiB, also for the next two
	MaxResult     int
	MaxCheckpoint int
	WatchBuffer   int // the number of events that a watcher may be behind; 0 means 1024

	// Logger receives errors that no call returns; nil discards them. An error that
	// repeats is logged once, and then once a minute with the number of repetitions.
	Logger *slog.Logger
}

const (
	leaseMin = 100 * time.Millisecond
	// keepRows is the memory for rows of waiting tasks, in bytes.
	keepRows = 16 << 20
	// maxName is PostgreSQL's limit for the name of a schema, in bytes.
	maxName = 63
)

func (c Config) withDefaults() Config {
	c.Schema = cmp.Or(c.Schema, "stint")
	if c.Name == "" {
		host, _ := os.Hostname() // without it, the process number has to do
		c.Name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Logger = slog.New(logthrottle.New(c.Logger.Handler()))
	return c
}

func (c Config) validate() error {
	var errs []error
	for _, field := range []struct {
		name  string
		value int
	}{
		{"MaxPayload", c.MaxPayload},
		{"MaxResult", c.MaxResult},
		{"MaxCheckpoint", c.MaxCheckpoint},
		{"WatchBuffer", c.WatchBuffer},
	} {
		if field.value < 0 {
			errs = append(errs, fmt.Errorf("%w: %s is %d; it is 0 for the default, or more",
				queue.ErrInvalid, field.name, field.value))
		}
	}
	if c.Patience < 0 {
		errs = append(errs, fmt.Errorf("%w: Patience is %s; it is 0 for the default, or more", queue.ErrInvalid, c.Patience))
	}
	if c.Lease != 0 && (c.Lease < leaseMin || c.Lease > dbrows.LeaseMost) {
		errs = append(errs, fmt.Errorf("%w: Lease is %s; it is 0 for the default, or from %s to %s",
			queue.ErrInvalid, c.Lease, leaseMin, dbrows.LeaseMost))
	}
	if len(c.Schema) > maxName {
		errs = append(errs, fmt.Errorf("%w: Schema has %d bytes; it may have %d", queue.ErrInvalid, len(c.Schema), maxName))
	}
	return errors.Join(errs...)
}

// Store is a [queue.Store] in PostgreSQL. It is safe for concurrent use.
type Store struct {
	*machine.Machine
	rows  *dbrows.Rows
	db    *rows
	log   *slog.Logger
	clock clock.Steady

	outcomes *machine.TxOutcomes
	// waits has an element for each call of Settle that waits for transactions, and so holds a connection.
	// They leave the others of the pool to the lease and the batches.
	waits chan struct{}
	life  context.Context //nolint:containedctx // ends when Close begins
	end   context.CancelFunc
	inbox sync.WaitGroup
}

var _ queue.Store = (*Store)(nil)

// Open makes this process the leader of the store in a schema of a database, and creates the
// schema and the tables if there are none. It reads the rows of all tasks. If the server
// does not answer, Open tries again for cfg.Patience, or until ctx ends. url is a URL or a
// string of parameters as libpq takes them. The caller closes the store.
//
// Errors: [queue.ErrInvalid] if the URL or cfg is not valid. [queue.ErrLed] if another
// process leads. [queue.ErrUnavailable] in this case too, and if the database cannot be
// reached or used; the message has the reason and the remedy.
func Open(ctx context.Context, url string, cfg Config) (*Store, error) {
	return open(ctx, url, cfg, func(db dbrows.DB) dbrows.DB { return db })
}

// open is Open with a function that replaces the database.
func open(ctx context.Context, url string, cfg Config, wrap func(dbrows.DB) dbrows.DB) (*Store, error) {
	t, err := parse(url)
	if err = errors.Join(err, cfg.validate()); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	log := cfg.Logger.With(slog.String("server", server(t, cfg)))
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	db, r, err := lead(ctx, t, cfg, true, giveUp, wrap)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, r.GiveUp)
	m, err := machine.Open(r, machine.Config{
		MaxPayload: cfg.MaxPayload, MaxResult: cfg.MaxResult, MaxCheckpoint: cfg.MaxCheckpoint,
		WatchBuffer: cfg.WatchBuffer, Epoch: r.Epoch(), Keep: keepRows, Room: r.Room, Stalled: r.Stalled,
		Leases: r.LeaseLog(), Fence: true,
		Damaged: func(id queue.ID, err error) {
			log.Error("a task cannot be read: restore its row from a copy of the database",
				slog.String("task", id.String()), slog.Any("error", err))
		},
		SetBack: func(ahead time.Duration) {
			log.Warn("the clock is behind the times in the store, which are corrected: a process before this one had a "+
				"clock that was ahead, or this one has the wrong time: check the clock", slog.Duration("ahead", ahead))
		},
	})
	if !stop() && err == nil {
		_ = m.Close()
		return nil, fmt.Errorf("%w: open the store: %w", queue.ErrUnavailable, context.Cause(ctx))
	}
	if err != nil {
		_ = r.Close() //nolint:contextcheck // Close makes its own context, because ctx may have ended
		return nil, fmt.Errorf("%w: %s: %w", queue.ErrUnavailable, server(t, cfg), err)
	}
	r.Opened()
	s := &Store{
		Machine: m, rows: r, db: db, log: log, clock: clock.New(), outcomes: machine.NewTxOutcomes(m),
		waits: make(chan struct{}, t.config.MaxConns/2),
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	b := inbox{
		submissions: machine.NewTxSubmissions(m), outcomes: s.outcomes, now: r.Now, log: log, check: router.CheckOf(ctx),
		refused: make(map[string]time.Time), waiting: make(map[string]string),
	}
	s.inbox.Go(func() { b.run(s.life) })
	return s, nil
}

// server names the store in messages, without a password.
func server(t target, cfg Config) string { return fmt.Sprintf("%s, schema %s", t.name, cfg.Schema) }

// lead makes this process the leader of the store. create says that the store is made if there
// is none. A refusal of the server calls giveUp, which ends ctx.
func lead(
	ctx context.Context, t target, cfg Config, create bool, giveUp func(), wrap func(dbrows.DB) dbrows.DB,
) (*rows, *dbrows.Rows, error) {
	db, err := newRows(ctx, t, cfg, giveUp)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: open the store: %s: %w", queue.ErrUnavailable, server(t, cfg), err)
	}
	db.existing = !create
	r, err := dbrows.Open(ctx, wrap(db), dbrows.Config{
		Server: server(t, cfg), Leader: queue.Leader{Name: cfg.Name, Contact: cfg.Contact}, Lease: cfg.Lease,
		Patience: cfg.Patience, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("%w: open the store: %w", queue.ErrUnavailable, err)
	}
	db.checkServer(ctx, cfg.Logger.With(slog.String("server", server(t, cfg))))
	return db, r, nil
}

// Clock returns the clock for the times of calls in this process, which was read when the store was
// opened. Setting the system's clock does not change it. [queue.New] uses it.
func (s *Store) Clock() clock.Steady { return s.clock }

// Claim is as [queue.Store] says. Every claim is one of [queue.Claim.Remote].
func (s *Store) Claim(ctx context.Context, now time.Time, c queue.Claim) (queue.Claimed, error) {
	c.Remote = true
	return s.Machine.Claim(ctx, now, c)
}

// Lost returns a channel that is closed when another process leads, or when the database has
// lost changes that it had confirmed. All calls that change something return
// [queue.ErrUnavailable] then, and the store has to be closed.
func (s *Store) Lost() <-chan struct{} { return s.rows.Lost() }

// Leads reports whether the lease of this process has not ended. While it has not, what
// Find, Explain and Stats have returned before was the present state; afterwards, another
// process may have led, though Lost is not closed while the database cannot be reached.
func (s *Store) Leads() bool { return s.rows.Leads() }

// Trouble returns why the server does not do what it is asked at present, and the remedy; nil if
// it does.
func (s *Store) Trouble() error { return s.rows.Trouble() }

// Vacant returns how long no process had led before this one, as far as the database remembers;
// 0 if it does not know.
func (s *Store) Vacant() time.Duration { return s.rows.Vacant() }

// Now returns the time by the clock of the database, which this process reads with each renewal
// of its lease. If that clock is set meanwhile, Now approaches it slowly. It does not block.
func (s *Store) Now() time.Time { return s.rows.Now() }

// Close is as [queue.Store] says. If the server does not answer, Close returns an error
// after some seconds; no call has returned a result that is not in the database. Another
// process can lead at once after Close, or, if the server did not answer, when the lease of
// this one has ended.
func (s *Store) Close() error {
	s.end()
	s.rows.GiveUpSoon()
	s.inbox.Wait()
	return s.Machine.Close()
}
