package relocate_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
	"github.com/stintgo/stint/queue/relocate"
)

var errCrash = errors.New("crash")

// disk is what survives a crash of the process that moves.
type disk struct {
	rows   map[string][]byte
	leases []machine.SlotEntry
	epoch  uint32
}

// crash ends the process at a step: before the step is made, or after it.
type crash struct {
	left  int
	after bool
}

func (c *crash) step(do func()) error {
	if c.left--; c.left > 0 {
		do()
		return nil
	}
	if c.left == 0 && c.after {
		do()
	}
	return errCrash
}

func newDisk() *disk { return &disk{rows: map[string][]byte{}} }

// usedDisk returns a disk with a store that has been used, and its content.
func usedDisk(t *testing.T) (d *disk, has map[string]string) {
	t.Helper()
	d = newDisk()
	store, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	use(t, store)
	has = content(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return d, has
}

// has opens the store of a disk, and checks its content.
func has(t *testing.T, d *disk, want map[string]string) {
	t.Helper()
	store, err := d.open()
	if err != nil {
		t.Fatal(err)
	}
	same(t, content(t, store), want)
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// place is the disk as a place whose changes and openings are steps.
func (d *disk) place(name string, c *crash) relocate.Place {
	return relocate.Place{Name: name, Open: func(context.Context, bool) (*relocate.Rows, error) {
		d.epoch++
		return &relocate.Rows{Rows: &diskRows{d, c}, Leases: &diskLeases{disk: d, crash: c}, Epoch: d.epoch}, nil
	}}
}

func (d *disk) open() (queue.Store, error) {
	d.epoch++
	never := &crash{left: 1 << 30}
	return machine.Open(&diskRows{d, never}, machine.Config{Epoch: d.epoch, Leases: &diskLeases{disk: d, crash: never}})
}

type diskRows struct {
	*disk
	crash *crash
}

func (r *diskRows) Apply(batch []machine.Change) error {
	return r.crash.step(func() {
		for _, c := range batch {
			if c.Value == nil {
				delete(r.rows, c.Key)
			} else {
				r.rows[c.Key] = c.Value
			}
		}
	})
}

func (r *diskRows) Get(key string) ([]byte, error) { return r.rows[key], nil }

func (r *diskRows) Scan(from, to string, down bool, fn func(string, []byte) bool) error {
	keys := slices.Sorted(maps.Keys(r.rows))
	if down {
		slices.Reverse(keys)
	}
	for _, key := range keys {
		if from <= key && key < to && !fn(key, r.rows[key]) {
			break
		}
	}
	return nil
}

func (r *diskRows) Close() error { return nil }

// diskLeases gives each lease a slot of its own, for ever.
type diskLeases struct {
	*disk
	crash *crash
	last  int
}

func (l *diskLeases) Recall(fn func(int, machine.LeaseEntry)) error {
	for _, e := range l.leases {
		l.last = max(l.last, e.Slot)
		fn(e.Slot, e.LeaseEntry)
	}
	return nil
}

func (l *diskLeases) Reserve(queue.Token) (int, error) {
	l.last++
	return l.last, nil
}

func (l *diskLeases) Put(entries []machine.SlotEntry) (n int, err error) {
	err = l.crash.step(func() { l.leases = append(l.leases, entries...) })
	return len(entries), err
}

func (l *diskLeases) Free(int, queue.Token) {}

// TestC11_MoveCrashesAtEachStep ends the moving process before and after each of its
// changes, up to twice, and then repeats the move. At no time can both stores be opened.
func TestC11_MoveCrashesAtEachStep(t *testing.T) {
	const steps = 7 // changes of a move: four marks, the rows, the leases, the base of epochs
	for first := range 2 * steps {
		for second := range 2*steps + 1 {
			t.Run(fmt.Sprint(first, " ", second), func(t *testing.T) { moveWithCrashes(t, first, second) })
		}
	}
}

func moveWithCrashes(t *testing.T, crashes ...int) {
	t.Helper()
	from, to := &disk{rows: map[string][]byte{}, epoch: 1000}, &disk{rows: map[string][]byte{}}
	store, err := from.open()
	if err != nil {
		t.Fatal(err)
	}
	settles := use(t, store)
	want := content(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, n := range crashes {
		c := &crash{left: 1 + n/2, after: n%2 == 1}
		_, err := relocate.Move(t.Context(), from.place("from", c), to.place("to", c))
		if err != nil && !errors.Is(err, errCrash) && !errors.Is(err, queue.ErrInvalid) {
			t.Fatal(err)
		}
		old, oldErr := from.open()
		_, newErr := to.open()
		if oldErr != nil {
			continue
		}
		if newErr == nil && len(to.rows) > 0 {
			t.Fatal("both stores can be opened, and the new one has rows")
		}
		same(t, content(t, old), want)
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
	}
	never := &crash{left: 1 << 30}
	_, err = relocate.Move(t.Context(), from.place("from", never), to.place("to", never))
	if err != nil && !errors.Is(err, queue.ErrInvalid) { // it was complete before
		t.Fatal(err)
	}
	if _, err := from.open(); err == nil {
		t.Error("the old store can be opened")
	}
	if len(to.leases) != len(from.leases) {
		t.Errorf("the new lease log has %d entries, the old one %d", len(to.leases), len(from.leases))
	}
	store, err = to.open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	same(t, content(t, store), want)
	finish(t, store, settles)
}

// TestC11_MoveElsewhereAfterACrash: after an interrupted move and a complete one to another store,
// the first one cannot be completed, and the first new store cannot be opened.
func TestC11_MoveElsewhereAfterACrash(t *testing.T) {
	const steps = 3 // changes before the rows are gone: two marks and the rows
	for n := range 2*steps + 1 {
		from, want := usedDisk(t)
		other, to := newDisk(), newDisk()
		c, never := &crash{left: 1 + n/2, after: n%2 == 1}, &crash{left: 1 << 30}
		if _, err := relocate.Move(t.Context(), from.place("from", c), other.place("other", c)); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		if _, err := relocate.Move(t.Context(), from.place("from", never), to.place("to", never)); err != nil {
			t.Fatal(n, err)
		}
		_, err := relocate.Move(t.Context(), from.place("from", never), other.place("other", never))
		if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), "have been moved to to") {
			t.Errorf("step %d: the first move is repeated with %v", n, err)
		}
		if s, err := other.open(); err == nil && len(other.rows) > 0 {
			t.Errorf("step %d: the first new store can be opened, with %d rows: %v", n, len(other.rows), s.Close())
		}
		has(t, to, want)
	}
}

// TestC11_MoveToAFullServer: a move stops when the new store should grow no more, and the old one can be opened.
func TestC11_MoveToAFullServer(t *testing.T) {
	from, want := usedDisk(t)
	to := newDisk()
	never, errFull := &crash{left: 1 << 30}, errors.New("full")
	place := to.place("to", never)
	open := place.Open
	place.Open = func(ctx context.Context, create bool) (*relocate.Rows, error) {
		rows, err := open(ctx, create)
		rows.Room = func() error { return errFull }
		return rows, err
	}
	if _, err := relocate.Move(t.Context(), from.place("from", never), place); !errors.Is(err, errFull) {
		t.Errorf("the move returns %v", err)
	}
	has(t, from, want)
}

// TestC11_MoveOfAnotherStoreOfTheName: a store with the name of the one whose move is not
// complete does not take its place.
func TestC11_MoveOfAnotherStoreOfTheName(t *testing.T) {
	const beforeTheLast = 6 // changes: the last one removes the mark of the new store
	first, second := &disk{rows: map[string][]byte{}}, &disk{rows: map[string][]byte{}}
	to := &disk{rows: map[string][]byte{}}
	for _, from := range []*disk{first, second} {
		store, err := from.open()
		if err != nil {
			t.Fatal(err)
		}
		use(t, store)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	c := &crash{left: beforeTheLast + 1}
	if _, err := relocate.Move(t.Context(), first.place("from", c), to.place("to", c)); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	rows := len(to.rows)
	never := &crash{left: 1 << 30}
	_, err := relocate.Move(t.Context(), second.place("from", never), to.place("to", never))
	if !errors.Is(err, queue.ErrInvalid) || len(to.rows) != rows {
		t.Errorf("the move of the other store returns %v, and leaves %d of %d rows", err, len(to.rows), rows)
	}
	moved, err := relocate.Move(t.Context(), first.place("from", never), to.place("to", never))
	if err != nil || moved.Tasks != 9 {
		t.Errorf("the move is completed with %+v, %v", moved, err)
	}
}
