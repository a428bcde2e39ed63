package relocate

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// A batch ends with the change that reaches one of these.
const (
	batchChanges = 2000
	batchBytes   = 4 << 20
)

// mover carries out a move.
//
//  1. The old store gets the ID of the move, and the new one a row with it that says that it is
//     not complete. A move to yet another store has another ID, so the first one is void.
//  2. The rows and the lease log are copied. They are removed first if a move was interrupted here.
//  3. The old store gets a row that says that its tasks are gone. This is the moment of the
//     move: before, only the old store may be opened; from then on, only the new one.
//  4. The row of the new store is removed.
type mover struct {
	ctx              context.Context //nolint:containedctx // of one call
	fromName, toName string
	from, to         *Rows
	moved            Moved
	id               string // of the last move from the old store
}

// between opens both stores, and closes them.
func (m *mover) between(from, to Place) (_ Moved, err error) {
	if m.from, err = from.Open(m.ctx, false); err != nil {
		return Moved{}, err
	}
	defer func() { err = errors.Join(err, m.from.Close()) }()
	defer m.interruptible(m.from)()
	if m.to, err = to.Open(m.ctx, true); err != nil {
		return Moved{}, err
	}
	defer func() { err = errors.Join(err, m.to.Close()) }()
	defer m.interruptible(m.to)()
	err = m.move()
	return m.moved, err
}

// interruptible has calls of rows end when the context does, until stop is called.
func (m *mover) interruptible(rows *Rows) (stop func()) {
	if rows.GiveUp == nil {
		return func() {}
	}
	end := context.AfterFunc(m.ctx, rows.GiveUp)
	return func() { end() }
}

func (m *mover) move() error {
	gone, err := machine.ReadMove(m.from)
	if err != nil {
		return err
	}
	begun, err := machine.ReadMove(m.to)
	if err != nil {
		return err
	}
	if m.id, err = machine.MoveID(m.from); err != nil {
		return err
	}
	switch {
	case gone != nil && begun != nil && gone.ID == begun.ID && gone.Gone:
		m.moved = Moved{gone.Tasks, gone.Bytes}
		return m.complete()
	case gone != nil && gone.Gone:
		return fmt.Errorf("%w: the tasks of %s have been moved to %s", queue.ErrInvalid, m.fromName, gone.To)
	case gone != nil:
		return fmt.Errorf("%w: the move of the tasks of %s to %s is not complete: repeat it first",
			queue.ErrInvalid, gone.From, m.fromName)
	case begun != nil && begun.Gone:
		return fmt.Errorf("%w: the tasks of %s have been moved to %s: it can be removed, and is not used again",
			queue.ErrInvalid, m.toName, begun.To)
	case begun != nil && begun.ID != m.id && begun.From == m.fromName && m.id != "":
		return fmt.Errorf("%w: a move of the tasks of %s to another store has begun after that to %s, which is void: "+
			"remove %s", queue.ErrInvalid, m.fromName, m.toName, m.toName)
	case begun != nil && begun.ID != m.id:
		return fmt.Errorf("%w: the move of the tasks of %s to %s is not complete: repeat it, or remove %s",
			queue.ErrInvalid, begun.From, m.toName, m.toName)
	}
	return m.begin(begun)
}

// begin makes all steps. begun is the row of a move that was interrupted in step 2.
func (m *mover) begin(begun *machine.MoveRow) error {
	if begun == nil {
		if err := m.checkUse(); err != nil {
			return err
		}
		m.id = rand.Text()
		if err := m.from.Apply([]machine.Change{machine.MoveIDChange(m.id)}); err != nil {
			return err
		}
	}
	row := machine.MoveRow{ID: m.id, From: m.fromName, To: m.toName}
	if err := m.to.Apply(row.Changes()); err != nil {
		return err
	}
	if begun != nil {
		if err := m.clear(); err != nil {
			return err
		}
	}
	for _, step := range []func() error{m.copyRows, m.copyLeases, m.setBase, m.checkInbox} {
		if err := step(); err != nil {
			return err
		}
	}
	row.Gone, row.Tasks, row.Bytes = true, m.moved.Tasks, m.moved.Bytes
	if err := m.from.Apply(row.Changes()); err != nil {
		return err
	}
	return m.complete()
}

// complete makes step 4, and looks for what came too late.
func (m *mover) complete() error {
	if err := m.to.Apply((*machine.MoveRow)(nil).Changes()); err != nil {
		return err
	}
	return m.checkLate()
}

// checkLate returns an error if the old store has got tasks or outcomes since the last check: it is not opened again.
func (m *mover) checkLate() error {
	late, err := machine.HasTransactions(m.from)
	switch {
	case err != nil:
		return fmt.Errorf("the move is complete, but whether transactions have submitted tasks to %s until its end is not "+
			"known: %w", m.fromName, err)
	case late:
		return fmt.Errorf("%w: the move is complete, but transactions have submitted tasks to %s, or settled attempts "+
			"there, until its end: these stay behind; submit the tasks again, to %s", queue.ErrUnavailable, m.fromName, m.toName)
	}
	return nil
}

// checkInbox returns an error if the old store has tasks, or outcomes of attempts, that are not accepted yet.
func (m *mover) checkInbox() error {
	has, err := machine.HasTransactions(m.from)
	if err == nil && has {
		err = m.errInbox()
	}
	return err
}

func (m *mover) errInbox() error {
	return fmt.Errorf("%w: %s has tasks or outcomes of transactions that are not accepted yet: end what writes them, "+
		"start a server on that store, end it when they are accepted, and repeat the move", queue.ErrUnavailable, m.fromName)
}

// checkUse returns an error if the old store has no rows of a machine, or the new one has some.
func (m *mover) checkUse() error {
	old, err := m.used(m.from)
	if err != nil {
		return err
	}
	if !old {
		return fmt.Errorf("%w: %s has no task, setting or schedule to move", queue.ErrInvalid, m.fromName)
	}
	if old, err = m.used(m.to); err == nil && old {
		return fmt.Errorf("%w: %s has tasks, settings or schedules already: a move needs an empty store",
			queue.ErrInvalid, m.toName)
	}
	return err
}

// used reports whether a store has rows of a machine.
func (m *mover) used(rows *Rows) (used bool, err error) {
	err = m.each(rows, func(string, []byte) bool {
		used = true
		return false
	})
	return used, err
}

// clear removes what an interrupted move has copied.
func (m *mover) clear() error {
	var keys []string // all, since a store may have one connection
	err := m.each(m.to, func(key string, _ []byte) bool {
		keys = append(keys, key)
		return true
	})
	if err != nil {
		return err
	}
	b := batch{to: m.to}
	for _, key := range keys {
		if !b.add(machine.Change{Key: key}) {
			break
		}
	}
	return b.apply()
}

func (m *mover) copyRows() error {
	b := batch{to: m.to}
	var waiting error
	err := m.each(m.from, func(key string, value []byte) bool {
		if machine.OfTransaction(key) {
			waiting = m.errInbox()
			return false
		}
		if machine.OfTask(key) {
			m.moved.Tasks++
		}
		m.moved.Bytes += int64(len(key) + len(value))
		return b.add(machine.Change{Key: key, Value: append(make([]byte, 0, len(value)), value...)})
	})
	return cmp.Or(waiting, err, b.apply())
}

// copyLeases copies the entries of the lease log that the new store does not have from an
// interrupted move.
func (m *mover) copyLeases() error {
	has := make(map[queue.Token]bool)
	if err := m.to.Leases.Recall(func(_ int, e machine.LeaseEntry) { has[e.Token] = true }); err != nil {
		return err
	}
	var entries []machine.SlotEntry
	if err := m.from.Leases.Recall(func(_ int, e machine.LeaseEntry) {
		if !has[e.Token] {
			entries = append(entries, machine.SlotEntry{LeaseEntry: e})
		}
	}); err != nil {
		return err
	}
	for i := range entries {
		slot, err := m.to.Leases.Reserve(entries[i].Token)
		if err != nil {
			return err
		}
		entries[i].Slot = slot
	}
	if len(entries) == 0 {
		return nil
	}
	if _, err := m.to.Leases.Put(entries); err != nil {
		return err
	}
	if log, ok := m.to.Leases.(interface{ Sync() error }); ok { // Put need not survive a loss of power
		return log.Sync()
	}
	return nil
}

// setBase makes the epochs of the new store larger than those of the old one.
func (m *mover) setBase() error {
	base, err := machine.Base(m.from)
	if err != nil {
		return err
	}
	if err := machine.CheckEpoch(base + m.from.Epoch + m.to.Epoch + 1); err != nil {
		return fmt.Errorf("%s: %w", m.fromName, err)
	}
	return m.to.Apply([]machine.Change{machine.BaseChange(base + m.from.Epoch)})
}

// each calls fn for all rows of a machine, except for those of moves, until fn returns false.
func (m *mover) each(rows *Rows, fn func(key string, value []byte) bool) error {
	more := true
	for letter := 'a'; letter <= 'z' && more; letter++ {
		err := rows.Scan(string(letter), string(letter+1), false, func(key string, value []byte) bool {
			more = m.ctx.Err() == nil && (machine.OfMove(key) || fn(key, value))
			return more
		})
		if err = errors.Join(err, context.Cause(m.ctx)); err != nil {
			return err
		}
	}
	return nil
}

// batch collects changes, and applies them when they are many.
type batch struct {
	to      *Rows
	changes []machine.Change
	bytes   int
	err     error
}

// add adds a change. It returns false after an error.
func (b *batch) add(c machine.Change) bool {
	b.changes = append(b.changes, c)
	if b.bytes += len(c.Key) + len(c.Value); len(b.changes) < batchChanges && b.bytes < batchBytes {
		return true
	}
	return b.apply() == nil
}

// apply applies the changes that are left, and returns the error of any batch.
func (b *batch) apply() error {
	if b.err == nil && len(b.changes) > 0 {
		b.err = b.to.Apply(b.changes)
		grows := slices.ContainsFunc(b.changes, func(c machine.Change) bool { return c.Value != nil })
		b.changes, b.bytes = nil, 0
		if b.err == nil && grows && b.to.Room != nil {
			b.err = b.to.Room()
		}
	}
	return b.err
}
