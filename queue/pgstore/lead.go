package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/dbrows"
)

// leader is the row of the leader.
type leader struct {
	id string
	queue.Leader
	format int
}

// leads reports whether the lease has not ended.
func (l *leader) leads() bool { return l.Left > 0 && l.Left <= dbrows.LeaseOfNow }

// Lead is as [dbrows.DB] says. A process that waits to lead calls it again and again: while
// another one leads, it reads the row of the leader and locks nothing.
func (r *rows) Lead(ctx context.Context, as queue.Leader, lease time.Duration) (t dbrows.Term, err error) {
	found, err := r.readLeader(ctx, r.pool, "")
	if err == nil {
		switch {
		case found.format == 0 && r.existing:
			err = refusal{fmt.Errorf("%w: there is no store: it would have a table %s.leader", queue.ErrInvalid, r.plain)}
		case found.id != r.id && found.leads():
			err = &queue.LedError{Leader: found.Leader}
		case found.format < len(r.migrations):
			err = r.migrate(ctx)
		}
	}
	if err == nil {
		t, err = r.take(ctx, as, lease)
	}
	err = explain(err)
	if final := (refusal{}); errors.As(err, &final) {
		r.giveUp()
	}
	return t, err
}

// querier is a connection, a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readLeader reads the row of the leader. Its format is 0 if there is no table. Tables of
// another program, and of a newer version of this one, are refused.
func (r *rows) readLeader(ctx context.Context, q querier, lock string) (l leader, err error) {
	var program string
	var left float64
	err = q.QueryRow(ctx, r.sql(`select program, format, id, name, contact, since,
		extract(epoch from until - clock_timestamp())::float8 from $schema.leader `+lock)).
		Scan(&program, &l.format, &l.id, &l.Name, &l.Contact, &l.Since, &left)
	l.Left = time.Duration(left * float64(time.Second))
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && pg.Code == undefinedTable:
		return leader{}, nil
	case errors.As(err, &pg) && pg.Code == undefinedColumn, err == nil && program != "stint":
		return l, refusal{fmt.Errorf("the table %s.leader is of another program: %s", r.plain, chooseAnother)}
	case errors.Is(err, pgx.ErrNoRows):
		return l, refusal{errNoLeader}
	case err == nil && l.format > len(r.migrations):
		return l, refusal{fmt.Errorf("the tables have format %d, and this program knows those up to %d: use the version of "+
			"the program that made them, or a newer one", l.format, len(r.migrations))}
	}
	return l, err
}

// take makes this process the leader, if the lease of the leader has ended. Both statements
// are sent together, as one transaction: if this process is cut off in between, no lock
// stays. The first one waits for the writes of the leader before, which lock the row of the
// leader for key share, and excludes later ones; the second one sees what they have changed. If
// the default_transaction_isolation of the server is above read committed, the snapshot is older
// than these changes: the lock of the number of the last batch makes that an error (40001), and
// Lead is repeated.
func (r *rows) take(ctx context.Context, as queue.Leader, lease time.Duration) (t dbrows.Term, err error) {
	var l queue.Leader
	var left float64
	b := &pgx.Batch{}
	b.Queue(r.sql(`select name, contact, since, extract(epoch from until - clock_timestamp())::float8
		from $schema.leader for update`)).
		QueryRow(func(row pgx.Row) error { return row.Scan(&l.Name, &l.Contact, &l.Since, &left) })
	b.Queue(r.sql(`update $schema.leader set
			epoch = case when id = $1 then epoch else epoch + 1 end,
			since = case when id = $1 then since else clock_timestamp() end,
			id = $1, name = $2, contact = $4, until = clock_timestamp() + make_interval(secs => $3)
		where id = $1 or until <= clock_timestamp() or until > clock_timestamp() + make_interval(secs => $5)
		returning epoch, (select number from $schema.batch for update)`),
		r.id, as.Name, lease.Seconds(), as.Contact, dbrows.LeaseOfNow.Seconds()).
		QueryRow(func(row pgx.Row) error { return row.Scan(&t.Epoch, &t.Batch) })
	err = r.pool.SendBatch(ctx, b).Close()
	if errors.Is(err, pgx.ErrNoRows) {
		l.Left = max(0, time.Duration(left*float64(time.Second)))
		return t, &queue.LedError{Leader: l}
	}
	if err == nil {
		r.epoch.Store(t.Epoch)
		t.Vacant = time.Duration(max(-left, 0) * float64(time.Second))
	}
	return t, err
}

// Renew is as [dbrows.DB] says.
func (r *rows) Renew(ctx context.Context, epoch uint32, lease time.Duration) error {
	done, err := r.pool.Exec(ctx, r.sql(`update $schema.leader set until = clock_timestamp() + make_interval(secs => $3)
		where epoch = $1 and id = $2`), int64(epoch), r.id, lease.Seconds())
	if err == nil && done.RowsAffected() == 0 {
		return r.whyFenced(ctx, epoch)
	}
	return explain(err)
}

// Now is as [dbrows.DB] says.
func (r *rows) Now(ctx context.Context) (now time.Time, err error) {
	err = r.pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&now)
	return now.UTC(), explain(err)
}

// Resign is as [dbrows.DB] says.
func (r *rows) Resign(ctx context.Context, epoch uint32) error {
	_, err := r.pool.Exec(ctx, r.sql(`update $schema.leader set until = clock_timestamp()
		where epoch = $1 and id = $2`),
		int64(epoch), r.id)
	return explain(err)
}

// Term is as [dbrows.DB] says. It writes the number of the last batch again: the number can
// be visible without being on the synchronous replicas, if the connection of its batch broke
// while the server waited for them. A batch that the server is still busy with is waited for.
func (r *rows) Term(ctx context.Context) (t dbrows.Term, err error) {
	var id string
	err = r.pool.QueryRow(ctx, r.sql(`with led as (select epoch, id from $schema.leader),
		written as (update $schema.batch set number = number from led where led.id = $1 returning number)
		select epoch, id, coalesce((select number from written), 0) from led`), r.id).Scan(&t.Epoch, &id, &t.Batch)
	if err == nil && id != r.id {
		return t, fenced(t.Epoch, r.epoch.Load())
	}
	return t, explain(err)
}

// whyFenced returns why the server has refused a write of an epoch of this process.
func (r *rows) whyFenced(ctx context.Context, epoch uint32) error {
	var now uint32
	err := r.pool.QueryRow(ctx, r.sql(`select epoch from $schema.leader where epoch <> $1 or id <> $2`),
		int64(epoch), r.id).Scan(&now)
	if err != nil {
		return explain(err)
	}
	return fenced(now, epoch)
}

// fenced returns the error for a process of an epoch while the server has another leader.
func fenced(now, epoch uint32) error {
	if now > epoch {
		return dbrows.ErrFenced
	}
	return fmt.Errorf("%w: its last leader was that of epoch %d, and this one is that of %d", dbrows.ErrLost, now, epoch)
}
