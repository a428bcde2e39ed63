package pgstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stintgo/stint/internal/clock"
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
// wait until there is room. Tasks that the store refuses for another reason, such as one that
// comes after a task which does not exist, stay in the table "rows" under their key, which
// the log of the leader names with the reason.
//
// Errors: [queue.ErrInvalid], [queue.ErrTooLarge], [queue.ErrUnavailable] if the tasks of the
// store have been moved away before the snapshot of the transaction, and those of the
// transaction. There is no table before the
// store was first opened.
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
	text, value, err := machine.InboxRow(tasks, cfg.MaxPayload)
	return strings.ReplaceAll(`insert into $schema.rows (key, value) select $1::bytea, $2::bytea
		where not exists (select from $schema.rows where key = '`+machine.MoveKey+`')`, "$schema", schema),
		[]byte(text), value, err
}

const (
	// inboxEvery is the interval at which the leader looks for tasks of transactions.
	inboxEvery = 100 * time.Millisecond
	// inboxMost is how many submissions it accepts before it looks again.
	inboxMost = 1000
	// refusedEvery is the time after which it tries a submission again that was refused.
	refusedEvery = time.Minute
)

// inbox accepts the tasks of transactions until ctx ends.
type inbox struct {
	machine *machine.Machine
	clock   clock.Steady
	log     *slog.Logger
	refused map[string]time.Time // when to try again, by key
}

func (b *inbox) run(ctx context.Context) {
	tick := time.NewTicker(inboxEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		keys, err := b.machine.Inbox(inboxMost + len(b.refused))
		if err != nil {
			continue // the rows log what fails
		}
		maps.DeleteFunc(b.refused, func(key string, _ time.Time) bool { return !slices.Contains(keys, key) })
		for _, key := range keys {
			if ctx.Err() != nil {
				return
			}
			b.accept(ctx, key)
		}
	}
}

// accept accepts a submission, unless it was refused a moment ago.
func (b *inbox) accept(ctx context.Context, key string) {
	if again, ok := b.refused[key]; ok && b.clock.Now().Before(again) {
		return
	}
	err := b.machine.AcceptSubmission(ctx, b.clock.Now(), key)
	switch {
	case err == nil, errors.Is(err, queue.ErrUnavailable), errors.Is(err, queue.ErrClosed), errors.Is(err, queue.ErrFull),
		ctx.Err() != nil:
		delete(b.refused, key)
		return
	case b.refused[key].IsZero():
		b.log.Error("tasks that a transaction has submitted are refused: remove the row of this key, or make it possible "+
			"to accept them", slog.String("key", fmt.Sprintf(`\x%x`, key)), slog.Any("error", err))
	}
	b.refused[key] = b.clock.Now().Add(refusedEvery)
}
