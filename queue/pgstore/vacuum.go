package pgstore

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// vacuum cleans the table of the rows while this process leads. The server does that by
// itself too, but looks for tables to clean once a minute (autovacuum_naptime); in a minute
// a busy store writes a hundred times what it keeps, and all that is dead then is searched
// by the next leader, which reads the rows in order.
//
// A VACUUM blocks no reads and writes. It is due after as many changes as a fifth of the rows,
// as each one reads the whole index, but not after fewer than vacuumMin.
type vacuum struct {
	changes atomic.Int64 // since the last one began
	due     atomic.Int64
	wake    chan struct{}
	stop    context.CancelFunc
	done    chan struct{}
}

const (
	// vacuumMin is the number of changes that are worth a VACUUM: some 30 MB.
	vacuumMin = 100_000
	// vacuumPart is the part of the rows that may be dead.
	vacuumPart = 5
	// vacuumRetry is the time until a failed VACUUM is tried again.
	vacuumRetry = time.Minute
)

func newVacuum(r *rows, log *slog.Logger) *vacuum {
	ctx, stop := context.WithCancel(context.Background())
	v := &vacuum{wake: make(chan struct{}, 1), stop: stop, done: make(chan struct{})}
	v.due.Store(vacuumMin)
	go func() {
		defer close(v.done)
		v.run(ctx, r, log)
	}()
	return v
}

// close ends a VACUUM that runs, and waits for that.
func (v *vacuum) close() {
	v.stop()
	<-v.done
}

// changed counts changes of rows.
func (v *vacuum) changed(n int) {
	if v.changes.Add(int64(n)) < v.due.Load() {
		return
	}
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// run cleans the table whenever that is due, until ctx ends.
func (v *vacuum) run(ctx context.Context, r *rows, log *slog.Logger) {
	for {
		select {
		case <-v.wake:
		case <-ctx.Done():
			return
		}
		v.changes.Store(0)
		live, err := r.clean(ctx)
		if err == nil {
			v.due.Store(max(vacuumMin, int64(live)/vacuumPart))
			continue
		}
		if ctx.Err() != nil {
			return
		}
		log.Warn("the table of the tasks cannot be vacuumed, and is larger than it has to be", slog.Any("error", err))
		select {
		case <-time.After(vacuumRetry):
		case <-ctx.Done():
			return
		}
	}
}

// clean makes the room of dead rows free for others, and returns the number of rows, as far
// as the server knows it.
func (r *rows) clean(ctx context.Context) (live float64, err error) {
	// The connections of the pool may be few, and the renewal of the lease needs one.
	conn, err := pgx.ConnectConfig(ctx, r.pool.Config().ConnConfig)
	if err != nil {
		return 0, explain(err)
	}
	defer func() {
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(short)
	}()
	// It does not wait for another VACUUM of the table, and does not give room back to the
	// file system, which would lock the table.
	if _, err := conn.Exec(ctx, r.sql(`vacuum (skip_locked, truncate off) $schema.rows`)); err != nil {
		return 0, explain(err)
	}
	err = conn.QueryRow(ctx, `select reltuples from pg_class where oid = to_regclass($1)`, r.sql("$schema.rows")).
		Scan(&live)
	return live, explain(err)
}
