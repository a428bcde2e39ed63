package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// SettlingTx is a transaction of the caller, as a transaction of pgx is.
type SettlingTx interface {
	Tx
	QueryRow(ctx context.Context, query string, args ...any) pgx.Row
}

// SettleTx settles an attempt in a transaction of its handler, in the database of the store
// and with cfg.Schema: if the transaction commits, the attempt has the outcome o, also if all
// processes end at once; if it is rolled back, nothing has happened. [queue.Attempt.Outcome]
// makes o. While the transaction is open, the store ends the lease in no other way, so if
// SettleTx has returned nil and the transaction commits, the attempt was not lost and no
// other worker has the task. The handler returns when the transaction has ended: nil after a
// commit, and the error otherwise. What it returns counts if the transaction has not
// committed, also if the handler cannot know that.
//
// The process that leads settles the attempt when the handler returns, or about a tenth of a
// second after the commit. Only Schema, MaxResult and MaxCheckpoint of cfg are used. The user
// of the transaction needs the privileges SELECT and INSERT on the table "rows", and UPDATE at
// isolation levels above read committed. SettleTx takes four round trips, five at these levels,
// and sets a savepoint. It waits for another transaction that settles the same attempt.
//
// Errors: [queue.ErrStale] if the lease was lost, or the attempt is settled already: roll
// back. [queue.ErrInvalid], [queue.ErrTooLarge], [queue.ErrUnavailable] if the tasks have been
// moved away, and those of the transaction; at the levels above read committed, a lost lease
// can be a serialization failure (40001). After an error the transaction settles nothing.
func SettleTx(ctx context.Context, tx SettlingTx, cfg Config, o queue.Outcome) error {
	return settle(ctx, cfg, o, settling{
		exec: func(statement string, args ...any) (int64, error) {
			done, err := tx.Exec(ctx, statement, args...)
			return done.RowsAffected(), err
		},
		query: func(into []any, statement string, args ...any) error {
			return tx.QueryRow(ctx, statement, args...).Scan(into...)
		},
	})
}

// SettleSQL is [SettleTx] for a transaction of package database/sql.
func SettleSQL(ctx context.Context, tx *sql.Tx, cfg Config, o queue.Outcome) error {
	return settle(ctx, cfg, o, settling{
		exec: func(statement string, args ...any) (int64, error) {
			done, err := tx.ExecContext(ctx, statement, args...)
			if err != nil {
				return 0, err
			}
			return done.RowsAffected()
		},
		query: func(into []any, statement string, args ...any) error {
			return tx.QueryRowContext(ctx, statement, args...).Scan(into...)
		},
	})
}

// settling executes statements in a transaction.
type settling struct {
	exec  func(statement string, args ...any) (changed int64, err error)
	query func(into []any, statement string, args ...any) error // into is for the columns of one row
}

// settle is SettleTx. Undoing the savepoint releases the locks if the lease was lost, so that
// the store need not wait for the end of the transaction.
func settle(ctx context.Context, cfg Config, o queue.Outcome, tx settling) error {
	if err := cfg.validate(); err != nil {
		return err
	}
	key, value, err := machine.OutcomeRow(o, clock.Now(), cfg.MaxResult, cfg.MaxCheckpoint)
	if err != nil {
		return err
	}
	if _, err := tx.exec("savepoint stint_settle"); err != nil {
		return fmt.Errorf("settle task %s: %w", o.ID, err)
	}
	schema := pgx.Identifier{cfg.withDefaults().Schema}.Sanitize()
	if err := tx.write(schema, o, key, value); err != nil {
		_, undone := tx.exec("rollback to savepoint stint_settle")
		if ctx.Err() == nil && undone != nil {
			err = errors.Join(err, undone)
		}
		return fmt.Errorf("settle task %s: %w", o.ID, err)
	}
	_, err = tx.exec("release savepoint stint_settle")
	return err
}

// write writes the row of the outcome. Only after that, it looks whether the attempt runs: from
// then on the leader cannot write a fence.
func (tx settling) write(schema string, o queue.Outcome, key string, value []byte) error {
	in := func(text string) string { return strings.ReplaceAll(text, "$schema", schema) }
	wrote, err := tx.exec(in(`insert into $schema.rows (key, value)
		select $1::bytea, int8send((extract(epoch from clock_timestamp()) * 1000000)::bigint) || $2::bytea
		where not exists (select from $schema.rows where key = '`+machine.MoveKey+`') on conflict do nothing`),
		[]byte(key), value)
	if err != nil {
		return err
	}
	if wrote == 0 {
		var moved bool
		err := tx.query([]any{&moved}, in(`select exists (select from $schema.rows where key = '`+machine.MoveKey+`')`))
		if err == nil && moved {
			return errMoved
		}
		return errors.Join(queue.ErrStale, err)
	}
	var level string
	var row []byte
	err = tx.query([]any{&level, &row}, in(`select current_setting('transaction_isolation'),
		(select value from $schema.rows where key = $1::bytea)`), []byte(machine.TaskKey(o.ID)))
	if err != nil {
		return err
	}
	runs, err := machine.MayRun(row, o.Token)
	switch {
	case err != nil:
		return err
	case !runs:
		return queue.ErrStale
	case level != "read committed":
		return tx.unchanged(in, machine.TaskKey(o.ID))
	}
	return nil
}

// unchanged returns an error if a row has changed since the snapshot of the transaction. A lock
// for share finds that out. The leader would wait for the lock, so the statement that takes it
// releases it: the exception undoes what its block has done.
func (tx settling) unchanged(in func(string) string, key string) error {
	_, err := tx.exec(in(`do $settle$ begin
		perform from $schema.rows where key = '` + fmt.Sprintf(`\x%x`, key) + `' for share;
		raise exception 'unchanged' using errcode = 'ST000';
	exception when sqlstate 'ST000' then null;
	end $settle$`))
	return err
}
