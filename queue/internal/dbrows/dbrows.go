// Package dbrows keeps the rows of a state machine on a database server. It has what is
// the same for every server: leadership, repeated attempts after an error whose outcome is
// unknown, and the lease log. What depends on the server is behind [DB].
//
// # Leadership
//
// Of all processes that use the same rows, one leads: it alone writes. The server has the
// epoch of the leader, the end of its lease by the server's clock, and the number of the
// last batch. A process leads after it has increased the epoch, which it may do when the
// lease of the leader before it has ended or was resigned. Each write names its epoch, and
// the server refuses the write if the epoch is another one. So a leader that was stopped
// or cut off changes nothing any more, whatever its own clock says.
//
// # Unknown outcomes
//
// If the connection breaks during a write, the write may have been made or not. Each batch
// has the number after that of the batch before it, the server makes a batch only in that
// order, and stores its number in the same transaction. So after an error the number on
// the server shows whether the batch was made.
package dbrows

// The files:
//
//   - dbrows.go: DB, what a database server has to do
//   - rows.go: Rows, the batches and reads of a machine
//   - attempts.go: calls of the server, repeated until one succeeds
//   - leadership.go: the lease of this process, and the server's clock
//   - health.go: what is logged and answered while the server fails
//   - leaselog.go: LeaseLog, the leases of running tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/journal"
)

// Term is a position in the history of the rows: a leader and its last batch.
type Term struct {
	Epoch uint32 // of the leader; it grows with every leader
	Batch uint64 // the number of the last batch; it grows over all epochs
	// Vacant is how long no process had led before this one, by the server's clock, at least;
	// only Lead sets it. It is 0 if the server does not know.
	Vacant time.Duration
}

var (
	// ErrFenced is returned by a DB if another process leads.
	ErrFenced = fmt.Errorf("%w: it has taken the store over", queue.ErrLed)
	// ErrLost is returned by [Rows], and may be returned by a DB, if the server has an older
	// batch or epoch than it has confirmed.
	ErrLost = errors.New("the server has lost changes that it had confirmed")
)

// DB is a database server. Its methods may be called concurrently, and make one attempt:
// [Rows] repeats them. They return soon after ctx has ended. After an error, except for the
// ones that a method documents, the outcome is unknown, and the server may still carry the
// call out later.
//
// Each DB leads for itself, also if two are in one process. It stores a random number of
// its own beside the epoch and compares both, because two leaders can get the same epoch if
// the server loses data in between.
type DB interface {
	// Lead makes the caller the leader, with the Name and the Contact of as, until lease has
	// passed by the server's clock. It returns the new term: an epoch larger than all before it, and the last
	// batch. Once it has returned, no write of an earlier epoch is made. If this DB leads
	// already, because the answer of a call was lost, the epoch stays: a call that the server
	// carries out late would otherwise depose its own process. Errors: a
	// [*queue.LedError], if the lease of another leader has not ended.
	Lead(ctx context.Context, as queue.Leader, lease time.Duration) (Term, error)
	// Renew extends the lease of the leader of an epoch to lease from now on. Errors:
	// ErrFenced.
	Renew(ctx context.Context, epoch uint32, lease time.Duration) error
	// Now returns the time of the server's clock.
	Now(ctx context.Context) (time.Time, error)
	// Resign ends the lease of the leader of an epoch. If another process leads, it does
	// nothing.
	Resign(ctx context.Context, epoch uint32) error
	// Term returns the present term. Since it confirms a batch, the batch must be as durable
	// as after Apply. Errors: ErrFenced.
	Term(ctx context.Context) (Term, error)

	// Apply makes all changes and stores t.Batch as the number of the last batch, or does
	// nothing. It returns when the changes are as durable as the server makes them. The
	// server must have the term {t.Epoch, t.Batch - 1}; otherwise Apply returns an error. No
	// two changes have the same key.
	Apply(ctx context.Context, t Term, changes []journal.Change) error
	// Full returns why new tasks must not be accepted, nil if they may: the last write has found
	// that the server has no room for them, and was made nevertheless. It does not block.
	Full() error
	// Get returns the value of a key, nil if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// ReadKeys returns the values of the first of keys, nil for those without, in one round
	// trip. There is at least one key; they ascend and have one first letter. It stops after the
	// value with which the total size reaches most.
	ReadKeys(ctx context.Context, keys []string, most int) (values [][]byte, err error)
	// Scan calls fn for the keys from ≤ key < to, in ascending order, or in descending order
	// if down is set, until fn returns false. fn does not keep the value.
	Scan(ctx context.Context, from, to string, down bool, fn func(key string, value []byte) bool) error

	// PutLeases stores rows of the lease log, all or none, as durably as Apply, if the
	// server has the epoch. put grows with every call; a row does not replace one of a
	// larger put with its number, which a call that was overtaken would do. Errors: ErrFenced.
	PutLeases(ctx context.Context, epoch uint32, put uint64, rows []LeaseRow) error
	// Leases calls fn for all rows of the lease log.
	Leases(ctx context.Context, fn func(LeaseRow)) error

	// Close closes the connections. It is called once, when all other calls have returned.
	Close() error
}

// LeaseRow is a row of the lease log.
type LeaseRow struct {
	Number  int // from 1
	Entries []byte
}
