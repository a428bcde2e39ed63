package pgstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// Tx is a transaction of the caller, or anything else of pgx that executes a statement.
type Tx interface {
	Exec(ctx context.Context, statement string, args ...any) (pgconn.CommandTag, error)
}

// SubmitTx submits tasks in a transaction of the caller, to the store in cfg.Schema of the
// same database: the tasks exist if and only if the transaction commits. [queue.Kind.Prepare]
// makes them. The process need not have the store open. Only Schema and MaxPayload of cfg are
// used; MaxPayload must not be larger than that of the store.
//
// The process that leads accepts the tasks about a tenth of a second after the commit, all or
// none, in the order of their IDs. Until then they are not found. If the queue is full they
// wait until there is room; tasks of other queues do not wait for that. Tasks that the store
// refuses for another reason, such as one that comes after a task which does not exist, or one
// whose queue belongs to another group and so to another Schema, stay in the table "rows" under
// their key, which the log of the leader names with the reason.
//
// Errors: [queue.ErrInvalid], [queue.ErrTooLarge], [queue.ErrUnavailable] if the tasks of the
// store have been moved away before the snapshot of the transaction, and those of the
// transaction. There is no table before the store was first opened.
func SubmitTx(ctx context.Context, tx Tx, cfg Config, tasks ...queue.NewTask) error {
	statement, key, value, err := submission(cfg, tasks)
	if err != nil {
		return err
	}
	done, err := tx.Exec(ctx, statement, key, value)
	if err == nil && done.RowsAffected() == 0 {
		err = errMoved
	}
	return err
}

var errMoved = fmt.Errorf("%w: the tasks of the store in this database have been moved, or are being moved: the "+
	"table \"rows\" has the names of both stores under the key m", queue.ErrUnavailable)

// SubmitSQL is [SubmitTx] for a transaction of package database/sql.
func SubmitSQL(ctx context.Context, tx *sql.Tx, cfg Config, tasks ...queue.NewTask) error {
	statement, key, value, err := submission(cfg, tasks)
	if err != nil {
		return err
	}
	done, err := tx.ExecContext(ctx, statement, key, value)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err == nil && n == 0 {
		return errMoved
	}
	return nil
}

// submission returns the statement that writes tasks into the inbox, and its arguments.
func submission(cfg Config, tasks []queue.NewTask) (statement string, key, value []byte, err error) {
	if err := cfg.validate(); err != nil {
		return "", nil, nil, err
	}
	schema := pgx.Identifier{cfg.withDefaults().Schema}.Sanitize()
	text, value, err := machine.SubmissionRow(tasks, cfg.MaxPayload)
	return strings.ReplaceAll(`insert into $schema.rows (key, value) select $1::bytea, $2::bytea
		where not exists (select from $schema.rows where key = '`+machine.MoveKey+`')`, "$schema", schema),
		[]byte(text), value, err
}
