package pgstore

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/stintgo/stint/queue"
)

// chooseAnother is what to do about a schema of another program.
const chooseAnother = "choose another schema (Config.Schema) or, for stint serve, another database"

//go:embed schema.sql
var schemaSQL string

// allMigrations make the tables of one format from those of the format before: the first one
// makes format 1 from nothing. Each sets leader.format. A change of the tables appends one; one
// that was released stays as it is. $schema is the quoted schema.
func allMigrations() []string { return []string{schemaSQL, sharedRowsSQL} }

// sharedRowsSQL makes format 2: a row of the lease log may have several entries. It changes no
// table, but programs of format 1, which would find no entry in such a row, then refuse the store.
const sharedRowsSQL = `update $schema.leader set format = 2`

// advisoryLock is held while tables are changed; it is 'stint' in ASCII.
const advisoryLock = 0x7374696e74

// migrate makes the tables, or brings them to the present format, in one transaction. If
// many processes start at once, the first one does it. While another process leads, the
// tables stay as that process knows them.
func (r *rows) migrate(ctx context.Context) error {
	// Each statement after the advisory lock sees what the holder before has committed.
	level := pgx.TxOptions{IsoLevel: pgx.ReadCommitted}
	return pgx.BeginTxFunc(ctx, r.pool, level, func(tx pgx.Tx) error {
		// If this process is cut off, the server would otherwise keep the locks for hours.
		if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = '10s'`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(advisoryLock)); err != nil {
			return err
		}
		made, err := r.made(ctx, tx)
		if err != nil {
			return err
		}
		found := leader{}
		if made {
			found, err = r.readLeader(ctx, tx, "for update")
		} else {
			err = r.createSchema(ctx, tx)
		}
		if err != nil {
			return err
		}
		if found.format < len(r.migrations) && found.leads() {
			return &queue.LedError{Leader: found.Leader}
		}
		for ; found.format < len(r.migrations); found.format++ {
			sql := r.sql(r.migrations[found.format])
			if _, err := tx.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol); err != nil { // it has several statements
				return fmt.Errorf("make the tables of format %d: %w", found.format+1, err)
			}
		}
		return nil
	})
}

// made reports whether there is a table of the leader. Other tables without it are refused:
// they are of another program.
func (r *rows) made(ctx context.Context, tx pgx.Tx) (made bool, err error) {
	var others bool
	err = tx.QueryRow(ctx, `select to_regclass($1 || '.leader') is not null, exists (
		select from unnest(array['.rows', '.leases', '.batch']) as name where to_regclass($1 || name) is not null)`,
		r.schema).Scan(&made, &others)
	if err == nil && !made && others {
		err = refusal{fmt.Errorf("the schema %s has tables of another program: %s", r.plain, chooseAnother)}
	}
	return made, err
}

// createSchema creates the schema if there is none: for one that exists, the user needs no
// privilege on the database.
func (r *rows) createSchema(ctx context.Context, tx pgx.Tx) error {
	var exists bool
	err := tx.QueryRow(ctx, `select exists (select from pg_namespace where nspname = $1)`, r.plain).Scan(&exists)
	if err == nil && !exists {
		_, err = tx.Exec(ctx, r.sql(`create schema $schema`))
	}
	return err
}
