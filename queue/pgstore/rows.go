package pgstore

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
)

// format is the version of the tables. A store reads no other. A change of the tables
// increments it, and migrate converts the version before.
const format = 1

//go:embed schema.sql
var schemaSQL string

// advisoryLock is held while tables are created; it is 'stint' in ASCII.
const advisoryLock = 0x7374696e74

// pageRows is the largest number of rows that one query of Scan returns.
const pageRows = 5000

// rows is a [dbrows.DB] in PostgreSQL.
type rows struct {
	pool   *pgxpool.Pool
	schema string // quoted
	plain  string // the schema, not quoted
	// id is of this process. It tells its own lease if the answer of Lead was lost, and
	// processes that have the same epoch after a loss of data.
	id     string
	giveUp func() // ends the attempts of Open

	// The statements, for this schema.
	move, set, remove, get, up, down, put string
}

var _ dbrows.DB = (*rows)(nil)

func newRows(ctx context.Context, t target, cfg Config, giveUp func()) (*rows, error) {
	pool, err := pgxpool.NewWithConfig(ctx, t.config)
	if err != nil {
		return nil, err
	}
	r := &rows{
		pool: pool, schema: pgx.Identifier{cfg.Schema}.Sanitize(), plain: cfg.Schema, id: rand.Text(), giveUp: giveUp,
	}
	// Without the row that it updates, move divides by zero, so that the whole batch fails.
	r.move = r.sql(`with moved as (
		update $schema.leader set batch = $3 where epoch = $1 and id = $2 and batch = $3 - 1 returning 1)
		select 1 / count(*) from moved`)
	r.set = r.sql(`insert into $schema.rows select * from unnest($1::bytea[], $2::bytea[])
		on conflict (key) do update set value = excluded.value`)
	r.remove = r.sql(`delete from $schema.rows where key = any($1::bytea[])`)
	r.get = r.sql(`select value from $schema.rows where key = $1`)
	r.up = r.sql(`select key, value from $schema.rows where key >= $1 and key < $2 order by key limit $3`)
	r.down = r.sql(`select key, value from $schema.rows where key >= $1 and key < $2 order by key desc limit $3`)
	// The share lock does not wait for batches, which change no key of the leader's row, and
	// excludes Lead, which locks the row for update.
	r.put = r.sql(`with led as (select 1 from $schema.leader where epoch = $1 and id = $2 for key share),
		put as (insert into $schema.leases (slot, put, entry)
			select e.slot, $3, e.entry from unnest($4::int[], $5::bytea[]) as e (slot, entry), led
			on conflict (slot) do update set put = excluded.put, entry = excluded.entry
			where leases.put < excluded.put)
		select count(*) from led`)
	return r, nil
}

// sql puts the schema into a statement.
func (r *rows) sql(text string) string { return strings.ReplaceAll(text, "$schema", r.schema) }

// seconds converts a duration to what PostgreSQL takes as an interval of seconds.
func seconds(d time.Duration) float64 { return d.Seconds() }

// Lead is as [dbrows.DB] says.
func (r *rows) Lead(ctx context.Context, name string, lease time.Duration) (t dbrows.Term, err error) {
	err = pgx.BeginFunc(ctx, r.pool, func(tx pgx.Tx) error {
		if err := r.migrate(ctx, tx); err != nil {
			return err
		}
		t, err = r.take(ctx, tx, name, lease)
		return err
	})
	err = explain(err)
	if final := (refusal{}); errors.As(err, &final) {
		r.giveUp()
	}
	return t, err
}

// take makes this process the leader, if the lease of the leader has ended.
func (r *rows) take(ctx context.Context, tx pgx.Tx, name string, lease time.Duration) (t dbrows.Term, err error) {
	var id string
	var leader dbrows.Leader
	var left float64
	err = tx.QueryRow(ctx, r.sql(`select id, name, since, extract(epoch from until - clock_timestamp())::float8
		from $schema.leader for update`)).Scan(&id, &leader.Name, &leader.Since, &left)
	if err != nil {
		return t, err
	}
	if leader.Left = time.Duration(left * float64(time.Second)); leader.Left > 0 && id != r.id {
		return t, &dbrows.LedError{Leader: leader}
	}
	err = tx.QueryRow(ctx, r.sql(`update $schema.leader set epoch = epoch + 1, id = $1, name = $2,
		since = clock_timestamp(), until = clock_timestamp() + make_interval(secs => $3) returning epoch, batch`),
		r.id, name, seconds(lease)).Scan(&t.Epoch, &t.Batch)
	return t, err
}

// migrate creates the tables if there are none, and refuses those of another program or of
// a newer version.
func (r *rows) migrate(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(advisoryLock)); err != nil {
		return err
	}
	var schema, leader, others bool
	err := tx.QueryRow(ctx, `select exists (select from pg_namespace where nspname = $1),
		to_regclass($2 || '.leader') is not null,
		to_regclass($2 || '.rows') is not null or to_regclass($2 || '.leases') is not null`,
		r.plain, r.schema).Scan(&schema, &leader, &others)
	if err != nil {
		return err
	}
	if leader {
		return r.checkFormat(ctx, tx)
	}
	if others {
		return refusal{fmt.Errorf("the schema %s has tables of another program: choose another schema", r.plain)}
	}
	if !schema {
		if _, err := tx.Exec(ctx, r.sql(`create schema $schema`)); err != nil {
			return err
		}
	}
	_, err = tx.Exec(ctx, r.sql(schemaSQL), pgx.QueryExecModeSimpleProtocol) // several statements
	return err
}

// checkFormat refuses tables that this version cannot read.
func (r *rows) checkFormat(ctx context.Context, tx pgx.Tx) error {
	var ours bool
	err := tx.QueryRow(ctx, `select count(*) = 2 from pg_attribute
		where attrelid = to_regclass($1 || '.leader') and attname in ('program', 'format')`, r.schema).Scan(&ours)
	if err != nil {
		return err
	}
	if !ours {
		return refusal{fmt.Errorf("the table %s.leader is of another program: choose another schema", r.plain)}
	}
	var found int
	if err := tx.QueryRow(ctx, r.sql(`select format from $schema.leader`)).Scan(&found); err != nil {
		return err
	}
	if found != format {
		return refusal{fmt.Errorf("the tables have format %d, and this program knows %d: use the version of the program "+
			"that made them, or a newer one", found, format)}
	}
	return nil
}

// Renew is as [dbrows.DB] says.
func (r *rows) Renew(ctx context.Context, epoch uint32, lease time.Duration) error {
	done, err := r.pool.Exec(ctx, r.sql(`update $schema.leader set until = clock_timestamp() + make_interval(secs => $3)
		where epoch = $1 and id = $2`), int64(epoch), r.id, seconds(lease))
	if err == nil && done.RowsAffected() == 0 {
		err = dbrows.ErrFenced
	}
	return explain(err)
}

// Resign is as [dbrows.DB] says.
func (r *rows) Resign(ctx context.Context, epoch uint32) error {
	_, err := r.pool.Exec(ctx, r.sql(`update $schema.leader set until = 'epoch' where epoch = $1 and id = $2`),
		int64(epoch), r.id)
	return explain(err)
}

// Term is as [dbrows.DB] says.
func (r *rows) Term(ctx context.Context) (t dbrows.Term, err error) {
	var id string
	err = r.pool.QueryRow(ctx, r.sql(`select epoch, batch, id from $schema.leader`)).Scan(&t.Epoch, &t.Batch, &id)
	if err == nil && id != r.id {
		err = dbrows.ErrFenced
	}
	return t, explain(err)
}

// Apply is as [dbrows.DB] says. The statements are sent together, and are one transaction,
// because they have one end.
func (r *rows) Apply(ctx context.Context, t dbrows.Term, changes []journal.Change) error {
	var keys, values, removed [][]byte
	for _, c := range changes {
		if c.Value == nil {
			removed = append(removed, []byte(c.Key))
		} else {
			keys, values = append(keys, []byte(c.Key)), append(values, c.Value)
		}
	}
	b := &pgx.Batch{}
	b.Queue(r.move, int64(t.Epoch), r.id, int64(t.Batch))
	if len(keys) > 0 {
		b.Queue(r.set, keys, values)
	}
	if len(removed) > 0 {
		b.Queue(r.remove, removed)
	}
	return explain(r.pool.SendBatch(ctx, b).Close())
}

// Get is as [dbrows.DB] says.
func (r *rows) Get(ctx context.Context, key string) (value []byte, err error) {
	err = r.pool.QueryRow(ctx, r.get, []byte(key)).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return value, explain(err)
}

// Scan is as [dbrows.DB] says.
func (r *rows) Scan(
	ctx context.Context, from, to string, down bool, fn func(key string, value []byte) bool,
) error {
	for {
		last, n, err := r.page(ctx, from, to, down, fn)
		if err != nil || n < pageRows {
			return explain(err)
		}
		if down {
			to = last
		} else {
			from = last + "\x00"
		}
	}
}

// page calls fn for the first rows of a range. n is below pageRows if these are all, or fn
// has returned false.
func (r *rows) page(
	ctx context.Context, from, to string, down bool, fn func(key string, value []byte) bool,
) (last string, n int, err error) {
	query := r.up
	if down {
		query = r.down
	}
	found, err := r.pool.Query(ctx, query, []byte(from), []byte(to), pageRows)
	if err != nil {
		return "", 0, err
	}
	defer found.Close()
	for found.Next() {
		raw := found.RawValues()
		last = string(raw[0])
		if !fn(last, raw[1]) {
			return "", 0, nil
		}
		n++
	}
	return last, n, found.Err()
}

// PutLeases is as [dbrows.DB] says.
func (r *rows) PutLeases(ctx context.Context, epoch uint32, put uint64, entries []dbrows.LeaseEntry) error {
	slots, contents := make([]int32, len(entries)), make([][]byte, len(entries))
	for i, e := range entries {
		slots[i], contents[i] = int32(e.Slot), e.Entry
	}
	var led int
	err := r.pool.QueryRow(ctx, r.put, int64(epoch), r.id, int64(put), slots, contents).Scan(&led)
	if err == nil && led == 0 {
		err = dbrows.ErrFenced
	}
	return explain(err)
}

// Leases is as [dbrows.DB] says.
func (r *rows) Leases(ctx context.Context, fn func(dbrows.LeaseEntry)) error {
	found, err := r.pool.Query(ctx, r.sql(`select slot, entry from $schema.leases`))
	if err != nil {
		return explain(err)
	}
	defer found.Close()
	for found.Next() {
		var e dbrows.LeaseEntry
		if err := found.Scan(&e.Slot, &e.Entry); err != nil {
			return err
		}
		fn(e)
	}
	return explain(found.Err())
}

// Close is as [dbrows.DB] says.
func (r *rows) Close() error {
	r.pool.Close()
	return nil
}
