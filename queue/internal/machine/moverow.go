package machine

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stintgo/stint/queue"
)

// MoveKey is the key of the row of a move.
const MoveKey = rowMove

// MoveRow is the row of a move of all rows to another store. The source has it, for ever, from
// the moment at which all rows are durable in the destination. The destination has it from the
// beginning of the move until the source has its own. A store with the row is not opened, so at
// most one of the two is open at any time.
type MoveRow struct {
	ID   string // random
	From string // names of the stores, for people
	To   string
	Gone bool // in the store that the rows come from
	// What has been moved; in the store that the rows come from.
	Tasks int   `json:",omitempty"`
	Bytes int64 `json:",omitempty"`
}

// MoveID returns the ID of the last move from rows, "" if none has begun yet.
func MoveID(rows Rows) (string, error) {
	value, err := rows.Get(rowMoveID)
	return string(value), err
}

// MoveIDChange returns the change that sets the ID of the last move from rows.
func MoveIDChange(id string) Change { return Change{Key: rowMoveID, Value: []byte(id)} }

// ReadMove returns the row of a move of rows, or nil.
func ReadMove(rows Rows) (*MoveRow, error) {
	value, err := rows.Get(rowMove)
	if value == nil || err != nil {
		return nil, err
	}
	m := new(MoveRow)
	if err := json.Unmarshal(value, m); err != nil {
		return nil, fmt.Errorf("the row of a move: %w", err)
	}
	return m, nil
}

// Changes returns the changes that write the row or, if m is nil, remove it.
func (m *MoveRow) Changes() []Change {
	if m == nil {
		return []Change{{Key: rowMove}}
	}
	value, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings, numbers and a bool
	}
	return []Change{{Key: rowMove, Value: value}}
}

// refusal returns why a store with the row is not opened.
func (m *MoveRow) refusal() error {
	if m.Gone {
		return fmt.Errorf("its tasks have been moved to %s: open that store", m.To)
	}
	return fmt.Errorf("the move of the tasks of %s to this store is not complete: repeat it; until then this store "+
		"cannot be opened", m.From)
}

// Base returns the number that is added to the epochs of rows: the largest epoch that they had in
// the stores that they have been moved from, or 0.
func Base(rows Rows) (uint32, error) {
	value, err := rows.Get(rowBase)
	if err != nil || value == nil {
		return 0, err
	}
	if len(value) != 4 {
		return 0, fmt.Errorf("%w: the row of the base of epochs has %d bytes", queue.ErrInvalid, len(value))
	}
	return binary.BigEndian.Uint32(value), nil
}

// BaseChange returns the change that sets the base of epochs.
func BaseChange(base uint32) Change {
	return Change{Key: rowBase, Value: binary.BigEndian.AppendUint32(nil, base)}
}

// OfMove reports whether a key is that of a row of a move, or of the base of epochs.
func OfMove(key string) bool { return key == rowMove || key == rowMoveID || key == rowBase }

// OfTransaction reports whether a transaction has written the row of a key: a submission or an outcome.
func OfTransaction(key string) bool { return key[:1] == rowSubmission || key[:1] == rowOutcome }

// HasTransactions reports whether there are rows for which [OfTransaction] reports true.
func HasTransactions(rows Rows) (has bool, err error) {
	for _, letter := range []string{rowSubmission, rowOutcome} {
		err = errors.Join(err, rows.Scan(letter, string(letter[0]+1), false, func(string, []byte) bool {
			has = true
			return false
		}))
	}
	return has, err
}

// OfTask reports whether a key is that of a task.
func OfTask(key string) bool { return key[:1] == rowTask }

// epochOf returns the epoch of a machine: the base of the rows plus epoch, the count of the store. The
// result is larger than the epochs of all stores that the rows have been in.
func epochOf(rows Rows, epoch uint32) (uint32, error) {
	move, err := ReadMove(rows)
	if err != nil {
		return 0, err
	}
	if move != nil {
		return 0, move.refusal()
	}
	base, err := Base(rows)
	if err == nil {
		err = CheckEpoch(base + epoch)
	}
	return base + epoch, err
}

// CheckEpoch returns an error if an epoch is larger than all that tokens have room for.
func CheckEpoch(epoch uint32) error {
	if epoch>>epochBits != 0 {
		return fmt.Errorf("its rows have been opened %d times, and more are not possible", epoch-1)
	}
	return nil
}
