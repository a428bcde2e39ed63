package pgstore

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stintgo/stint/queue/internal/dbrows"
	"github.com/stintgo/stint/queue/internal/journal"
)

// pageFirst is the number of rows that the first query of a Scan asks for. Each further one
// asks for pageGrowth times as many: PostgreSQL may sort all rows that are left for each of
// them, as it does before it has statistics about a new table.
const (
	pageFirst  = 1000
	pageGrowth = 10
	pageLast   = 1_000_000
)

// maxMessage limits the keys and values of one statement, in bytes. PostgreSQL takes up to
// 1 GiB, and batches have no limit.
const maxMessage = 64 << 20

// rows is a [dbrows.DB] in PostgreSQL.
type rows struct {
	pool   *pgxpool.Pool
	schema string // quoted
	plain  string // the schema, not quoted
	// id is of this process. It tells its own lease if the answer of Lead was lost, and
	// processes that have the same epoch after a loss of data.
	id     string
	vacuum *vacuum
	giveUp func() // ends the attempts of Open
	// existing says that Lead does not make the store if there is none.
	existing bool
	epoch    atomic.Uint32 // of this process, when it leads

	migrations []string
	maxMessage int // bytes

	// The statements, for this schema.
	apply, applyRemoved, set, get, some, up, down, put string
}

var _ dbrows.DB = (*rows)(nil)

func newRows(ctx context.Context, t target, cfg Config, giveUp func()) (*rows, error) {
	pool, err := pgxpool.NewWithConfig(ctx, t.config)
	if err != nil {
		return nil, err
	}
	r := &rows{
		pool: pool, schema: pgx.Identifier{cfg.Schema}.Sanitize(), plain: cfg.Schema, id: rand.Text(), giveUp: giveUp,
		migrations: allMigrations(), maxMessage: maxMessage,
	}
	r.set = r.sql(`insert into $schema.rows select * from unnest($1::bytea[], $2::bytea[])
		on conflict (key) do update set value = excluded.value`)
	// It is one statement, so that the server makes nothing, and locks nothing, until it has
	// all of it: this process may be cut off while it sends. If moved has no row, the division
	// by zero undoes the whole batch. The lock is that of put. The part that removes rows is left
	// out of a batch that removes none, as most do: it would take 2 to 10 % of the time.
	change := `with led as (select from $schema.leader where epoch = $1 and id = $2 for key share),
		moved as (update $schema.batch set number = $3 from led where number = $3 - 1 returning 1),
		changed as (insert into $schema.rows select e.* from unnest($4::bytea[], $5::bytea[]) as e, moved
			on conflict (key) do update set value = excluded.value)`
	remove := `, removed as (delete from $schema.rows using moved where key = any($6::bytea[]))`
	end := ` select 1 / count(*) from moved`
	r.apply, r.applyRemoved = r.sql(change+end), r.sql(change+remove+end)
	r.get = r.sql(`select value from $schema.rows where key = $1`)
	r.some = r.sql(`select key, value from (select key, value, sum(octet_length(value)) over (order by key)
			- octet_length(value) as before from $schema.rows where key = any($1::bytea[])) as e
		where before < $2 order by key`)
	r.up = r.sql(`select key, value from $schema.rows where key >= $1 and key < $2 order by key limit $3`)
	r.down = r.sql(`select key, value from $schema.rows where key >= $1 and key < $2 order by key desc limit $3`)
	// The share lock does not wait for batches and renewals, and excludes Lead, which locks the
	// row for update.
	r.put = r.sql(`with led as (select 1 from $schema.leader where epoch = $1 and id = $2 for key share),
		put as (insert into $schema.leases (slot, put, entry)
			select e.slot, $3, e.entry from unnest($4::int[], $5::bytea[]) as e (slot, entry), led
			on conflict (slot) do update set put = excluded.put, entry = excluded.entry
			where leases.put < excluded.put)
		select count(*) from led`)
	r.vacuum = newVacuum(r, cfg.Logger) //nolint:contextcheck // it lives until Close
	return r, nil
}

// sql puts the schema into a statement.
func (r *rows) sql(text string) string { return strings.ReplaceAll(text, "$schema", r.schema) }

// Full is as [dbrows.DB] says: a server without room fails each write.
func (r *rows) Full() error { return nil }

// Apply is as [dbrows.DB] says. The statements are sent together, and are one transaction,
// because they have one end. Nearly always it is a single statement; more than r.maxMessage
// is sent in several.
func (r *rows) Apply(ctx context.Context, t dbrows.Term, changes []journal.Change) error {
	keys, values := [][]byte{}, [][]byte{} // not nil, which is null
	var removed [][]byte
	b := &pgx.Batch{}
	size := 0
	for _, c := range changes {
		n := len(c.Key) + len(c.Value)
		if c.Value == nil {
			removed = append(removed, []byte(c.Key))
			continue
		}
		if size+n > r.maxMessage && size > 0 {
			b.Queue(r.set, keys, values)
			keys, values, size = [][]byte{}, [][]byte{}, 0
		}
		keys, values, size = append(keys, []byte(c.Key)), append(values, c.Value), size+n
	}
	if len(removed) == 0 {
		b.Queue(r.apply, int64(t.Epoch), r.id, int64(t.Batch), keys, values)
	} else {
		b.Queue(r.applyRemoved, int64(t.Epoch), r.id, int64(t.Batch), keys, values, removed)
	}
	r.vacuum.changed(len(changes))
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

// ReadKeys is as [dbrows.DB] says.
func (r *rows) ReadKeys(ctx context.Context, keys []string, most int) (values [][]byte, err error) {
	names := make([][]byte, len(keys))
	for i, key := range keys {
		names[i] = []byte(key)
	}
	found, err := r.pool.Query(ctx, r.some, names, int64(most))
	if err != nil {
		return nil, explain(err)
	}
	defer found.Close()
	for found.Next() {
		var key, value []byte
		if err := found.Scan(&key, &value); err != nil {
			return nil, err
		}
		for keys[len(values)] != string(key) {
			values = append(values, nil)
		}
		values = append(values, value)
	}
	return values, explain(found.Err())
}

// Scan is as [dbrows.DB] says.
func (r *rows) Scan(
	ctx context.Context, from, to string, down bool, fn func(key string, value []byte) bool,
) error {
	for limit := pageFirst; ; limit = min(pageGrowth*limit, pageLast) {
		last, n, err := r.page(ctx, from, to, down, limit, fn)
		if err != nil || n < limit {
			return explain(err)
		}
		if down {
			to = last
		} else {
			from = last + "\x00"
		}
	}
}

// page calls fn for the first rows of a range, up to limit. n is below limit if these are
// all, or fn has returned false.
func (r *rows) page(
	ctx context.Context, from, to string, down bool, limit int, fn func(key string, value []byte) bool,
) (last string, n int, err error) {
	query := r.up
	if down {
		query = r.down
	}
	found, err := r.pool.Query(ctx, query, []byte(from), []byte(to), limit)
	if err != nil {
		return "", 0, err
	}
	defer found.Close()
	for found.Next() {
		var key, value pgtype.DriverBytes // valid until Next
		if err := found.Scan(&key, &value); err != nil {
			return "", 0, err
		}
		last = string(key)
		if !fn(last, value) {
			return "", 0, nil
		}
		n++
	}
	return last, n, found.Err()
}

// PutLeases is as [dbrows.DB] says.
func (r *rows) PutLeases(ctx context.Context, epoch uint32, put uint64, rows []dbrows.LeaseRow) error {
	numbers, entries := make([]int32, len(rows)), make([][]byte, len(rows))
	for i, row := range rows {
		numbers[i], entries[i] = int32(row.Number), row.Entries
	}
	var led int
	err := r.pool.QueryRow(ctx, r.put, int64(epoch), r.id, int64(put), numbers, entries).Scan(&led)
	if err == nil && led == 0 {
		return r.whyFenced(ctx, epoch)
	}
	return explain(err)
}

// Leases is as [dbrows.DB] says.
func (r *rows) Leases(ctx context.Context, fn func(dbrows.LeaseRow)) error {
	found, err := r.pool.Query(ctx, r.sql(`select slot, entry from $schema.leases`))
	if err != nil {
		return explain(err)
	}
	defer found.Close()
	for found.Next() {
		var row dbrows.LeaseRow
		if err := found.Scan(&row.Number, &row.Entries); err != nil {
			return err
		}
		fn(row)
	}
	return explain(found.Err())
}

// Close is as [dbrows.DB] says.
func (r *rows) Close() error {
	r.vacuum.close()
	r.pool.Close()
	return nil
}
