package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/machine"
)

// OpenWrapped is Open with a function that replaces the database.
func OpenWrapped(ctx context.Context, url string, cfg Config, wrap func(dbrows.DB) dbrows.DB) (*Store, error) {
	return open(ctx, url, cfg, wrap)
}

// OpenNext is Open in a version with one more migration.
func OpenNext(ctx context.Context, url string, cfg Config, migration string) (*Store, error) {
	return open(ctx, url, cfg, func(db dbrows.DB) dbrows.DB {
		r := db.(*rows)
		r.migrations = append(r.migrations, migration)
		return r
	})
}

// VacuumAfter makes a VACUUM due after a number of changes, until one has run.
func VacuumAfter(db dbrows.DB, changes int64) { db.(*rows).vacuum.due.Store(changes) }

// OpenDB returns a database that leads nothing yet. It limits a statement to maxMessage bytes.
func OpenDB(ctx context.Context, url string, cfg Config, maxMessage int) (dbrows.DB, error) {
	t, err := parse(url)
	if err != nil {
		return nil, err
	}
	r, err := newRows(ctx, t, cfg.withDefaults(), func() {})
	if err != nil {
		return nil, err
	}
	r.maxMessage = maxMessage
	return r, nil
}

// VacuumMode returns how the connection of a VACUUM sends statements.
func VacuumMode(db dbrows.DB) pgx.QueryExecMode {
	return db.(*rows).pool.Config().ConnConfig.DefaultQueryExecMode
}

// Session returns how many statements a connection of a database has prepared, and whether
// its plans may read whole tables and may be compiled.
func Session(ctx context.Context, db dbrows.DB) (prepared int, scans, jit string, err error) {
	err = db.(*rows).pool.QueryRow(ctx, `select count(*), current_setting('enable_seqscan'), current_setting('jit')
		from pg_prepared_statements`).Scan(&prepared, &scans, &jit)
	return prepared, scans, jit, err
}

// Fence writes a fence for an attempt, as Maintain does before it ends the lease.
func Fence(ctx context.Context, s *Store, id queue.ID, token queue.Token) error {
	key := machine.OutcomeKey(machine.Lease{ID: id, Token: token})
	_, err := s.db.fences(ctx, [][]byte{[]byte(key)}, fenceWait)
	return err
}

// LookAccepts makes a look for outcomes of transactions, and reports whether it has accepted one.
func LookAccepts(ctx context.Context, s *Store) bool {
	b := inbox{outcomes: s.outcomes, now: s.Now, log: s.log}
	b.settle(ctx)
	return b.useful
}

// InboxPause returns how long the leader pauses after a look for rows of transactions that took
// some time, and has accepted something or not.
func InboxPause(useful bool, took time.Duration) time.Duration {
	return (&inbox{useful: useful}).pause(took)
}

// PoolSize returns how many connections a store at url has at most.
func PoolSize(url string) (int32, error) {
	t, err := parse(url)
	if err != nil {
		return 0, err
	}
	return t.config.MaxConns, nil
}
