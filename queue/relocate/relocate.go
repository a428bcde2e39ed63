// Package relocate moves the tasks of one store to another: from a directory to PostgreSQL
// or Redis, back, or from one server to the next, with queues, settings, schedules, results
// and reservations.
//
//	from, err := filestore.Place("stint-data/store", filestore.Config{})
//	...
//	to, err := pgstore.Place("postgres://db.example.com/app", pgstore.Config{})
//	...
//	n, err := relocate.Move(ctx, from, to)
//
// At any time at most one of the two stores can be opened, so nothing runs twice: the old
// store can never be opened again, and its error names the new one.
package relocate

// The files:
//
//   - relocate.go: Move and Place
//   - mover.go: the steps of a move

import (
	"context"
	"errors"
	"fmt"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// Place is where a store keeps its rows. [filestore.Place], [pgstore.Place] and
// [redisstore.Place] make one.
//
// [filestore.Place]: https://pkg.go.dev/github.com/stintgo/stint/queue/filestore#Place
// [pgstore.Place]: https://pkg.go.dev/github.com/stintgo/stint/queue/pgstore#Place
// [redisstore.Place]: https://pkg.go.dev/github.com/stintgo/stint/queue/redisstore#Place
type Place struct {
	// Name is the name of the store for people, without a password. It is stored in both stores.
	Name string
	// Open opens the rows for this process alone. If there is no store, Open makes one, or, without
	// create, changes nothing and returns an error. The error is [queue.ErrUnavailable] if another
	// process has the rows.
	Open func(ctx context.Context, create bool) (*Rows, error)
}

// Rows are the rows of a store that this process has opened, without a machine on them.
type Rows struct {
	machine.Rows
	Leases machine.LeaseStorage
	Epoch  uint32 // larger than the epochs of all processes that had the rows before
	GiveUp func() // ends calls that wait for a server, with an error; may be nil
	// Room returns why the rows should grow no more, though they can, or nil: a server may be over its
	// limit of memory. It may be nil.
	Room func() error
}

// Moved is what a move has moved.
type Moved struct {
	Tasks int // finished ones are counted as well
	Bytes int64
}

// Move moves all tasks from one store to another, which must be empty; it is created if it
// does not exist. Neither may be open, in any process, and no transaction may submit to from
// with pgstore.SubmitTx, or settle an attempt there with pgstore.SettleTx: Move returns an error
// if it finds what such a transaction has written. A transaction that began before the end of the
// move may commit later; its tasks and outcomes stay behind. Move blocks until
// both stores are durable. It moves some ten thousand tasks per second and more, and takes
// little memory.
//
// If the process ends during a move, or Move returns an error, the same call can be repeated,
// and begins anew or completes the move, whichever is right. Until then, either from can be
// opened as before, or none of the two. After the end of a move the same call returns
// [queue.ErrInvalid]; an error that says that the move is complete is about what transactions have
// left in from.
//
// Leases of workers in other processes continue in the new store. Running tasks of a process
// that has crashed count as in from: as one crash. So do all tasks that a directory had
// running when its server was killed.
//
// Errors: [queue.ErrInvalid] if from does not exist or is empty, or to is not empty, or both are the same store.
// [queue.ErrUnavailable] if one of the two cannot be opened, has been moved away, or fails.
func Move(ctx context.Context, from, to Place) (Moved, error) {
	if from.Name == to.Name {
		return Moved{}, fmt.Errorf("%w: both stores are %s: name another one to move its tasks to", queue.ErrInvalid, to.Name)
	}
	m := &mover{ctx: ctx, fromName: from.Name, toName: to.Name}
	moved, err := m.between(from, to)
	if err != nil && !errors.Is(err, queue.ErrInvalid) && !errors.Is(err, queue.ErrUnavailable) {
		err = fmt.Errorf("%w: %w", queue.ErrUnavailable, err)
	}
	if err != nil {
		return Moved{}, fmt.Errorf("move the tasks of %s to %s: %w", from.Name, to.Name, err)
	}
	return moved, nil
}
