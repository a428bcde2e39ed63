package relocate_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
	"github.com/stintgo/stint/queue/relocate"
)

// lateRows call late after a change of a key.
type lateRows struct {
	machine.Rows
	key  string
	late func()
}

func (r *lateRows) Apply(batch []machine.Change) error {
	err := r.Rows.Apply(batch)
	if slices.ContainsFunc(batch, func(c machine.Change) bool { return c.Key == r.key }) {
		r.late()
	}
	return err
}

func withLate(p relocate.Place, key string, late func()) relocate.Place {
	open := p.Open
	p.Open = func(ctx context.Context, create bool) (*relocate.Rows, error) {
		rows, err := open(ctx, create)
		if err == nil {
			rows.Rows = &lateRows{rows.Rows, key, late}
		}
		return rows, err
	}
	return p
}

// TestC11_MoveOfLateTransactions: a transaction that submits a task, or settles an attempt, during the move is noticed.
// Before the tasks are gone the move is given up, and afterwards its error says what to do about what stays behind,
// also if the process has ended meanwhile and the move is repeated.
func TestC11_MoveOfLateTransactions(t *testing.T) {
	lateTransactions(t, "i0123456789abcdef", false)
	lateTransactions(t, "o0123456789abcdef01234567", false)
	lateTransactions(t, "o0123456789abcdef01234567", true)
}

func lateTransactions(t *testing.T, key string, interrupted bool) {
	t.Helper()
	const moved, base = "m", "e" // keys of the mark of a move, and of the base of epochs, which is changed last
	from, to := &disk{rows: map[string][]byte{}}, &disk{rows: map[string][]byte{}}
	store, err := from.open()
	if err != nil {
		t.Fatal(err)
	}
	use(t, store)
	limit := queue.Change{Key: "k", Set: queue.Settings{Max: 1}} // a row between those of tasks and of outcomes
	if err := store.Configure(t.Context(), time.Now(), queue.DefaultQueue, limit); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	never := &crash{left: 1 << 30}
	commit := func() { from.rows[key] = []byte{} }
	_, err = relocate.Move(t.Context(), from.place("from", never), withLate(to.place("to", never), base, commit))
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "repeat the move") {
		t.Errorf("%.1s: committed before the tasks are gone: %v", key, err)
	}
	delete(from.rows, key) // a server on the old store accepts it
	ends := &crash{left: 1 << 30}
	gone := func() {
		commit()
		if interrupted {
			ends.left = 1
		}
	}
	_, err = relocate.Move(t.Context(), withLate(from.place("from", never), moved, gone), to.place("to", ends))
	if interrupted {
		if !errors.Is(err, errCrash) {
			t.Errorf("the interrupted move returns %v", err)
		}
		_, err = relocate.Move(t.Context(), from.place("from", never), to.place("to", never))
	}
	if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "the move is complete") {
		t.Errorf("%.1s: committed when the tasks are gone: %v", key, err)
	}
	if _, err := from.open(); err == nil {
		t.Errorf("%.1s: the old store can be opened", key)
	}
	if store, err = to.open(); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}
