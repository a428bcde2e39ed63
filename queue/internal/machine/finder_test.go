package machine_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// many is more tasks than a search visits in one part; one in a thousand has the kind
// rare.
const many = 25_000

func submitMany(t *testing.T, r *rows) (m *machine.Machine, rare []queue.ID) {
	t.Helper()
	m = open(t, r)
	var ids queue.IDs
	tasks := make([]queue.NewTask, many)
	for i := range tasks {
		tasks[i] = newTask(&ids, queue.Spec{Kind: "often"})
		if i%1000 == 999 {
			tasks[i].Kind, tasks[i].Labels, tasks[i].Tier = "rare", map[string]string{"n": "1"}, stint.High
			rare = append(rare, tasks[i].ID)
		}
	}
	submit(t, m, tasks...)
	return m, rare
}

// A page continues behind the last one, in both directions, with any filter, however
// sparse the matching tasks are.
func TestC4_FindAmongMany(t *testing.T) {
	m, rare := submitMany(t, newRows())
	for _, f := range []queue.Filter{
		{Kind: "rare"},
		{Labels: map[string]string{"n": "1"}},
		{Queue: "default", Kind: "rare", States: []queue.State{queue.Waiting}},
		{IDs: append(slices.Clone(rare), rare...)},
	} {
		for _, newest := range []bool{false, true} {
			want := slices.Clone(rare)
			if newest {
				slices.Reverse(want)
			}
			var got []queue.ID
			p := queue.Page{Limit: 4, Newest: newest}
			for {
				found, err := m.Find(t.Context(), f, p)
				if err != nil {
					t.Fatal(err)
				}
				for i := range found {
					got = append(got, found[i].ID)
				}
				if len(found) < p.Limit {
					break
				}
				p.After = got[len(got)-1]
			}
			if !slices.Equal(got, want) {
				t.Errorf("%+v: %d tasks, want %d", f, len(got), len(want))
			}
		}
	}
}

// A command over many tasks is made in parts, in the order of the IDs, and its limit
// applies to all parts together.
func TestC4_CommandOverMany(t *testing.T) {
	r := newRows()
	m, rare := submitMany(t, r)
	before := r.batches
	const most = 3333
	for _, command := range []struct {
		queue.Command
		want int
	}{
		{queue.Command{Do: queue.OrderPause, Filter: queue.Filter{Kind: "rare"}}, len(rare)},
		{queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Kind: "often"}, Limit: most}, most},
		{queue.Command{Do: queue.OrderForget, All: true}, most},
		{queue.Command{Do: queue.OrderCancel, All: true}, many - most},
	} {
		n, err := m.Command(t.Context(), start, command.Command)
		if err != nil || n != command.want {
			t.Errorf("%+v: %d tasks, error %v; want %d", command.Command, n, err, command.want)
		}
	}
	first, err := m.Find(t.Context(), queue.Filter{}, queue.Page{Limit: 1})
	if err != nil || len(first) != 1 || first[0].ID != rare[0] {
		t.Errorf("the first that is left is %v, error %v", first, err)
	}
	if n := r.batches - before; n < (2*many+most)/1000 {
		t.Errorf("all of that was written in %d batches: others had to wait for them", n)
	}
}

// A task that is cancelled because another one is forgotten is kept, also if the command
// reaches it in a later part.
func TestC4_ForgettingLeavesWhatItCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := open(t, newRows())
		var ids queue.IDs
		first := newTask(&ids, queue.Spec{})
		tasks := []queue.NewTask{first}
		for range many {
			tasks = append(tasks, newTask(&ids, queue.Spec{Options: queue.Options{After: []queue.ID{first.ID}}}))
		}
		submit(t, m, tasks...)
		for _, command := range []struct {
			queue.Command
			want int
		}{
			{queue.Command{Do: queue.OrderCancel, All: true, Limit: 1}, 1},
			{queue.Command{Do: queue.OrderForget, All: true}, 1},
			{queue.Command{Do: queue.OrderForget, All: true}, many},
		} {
			if n, err := m.Command(t.Context(), start, command.Command); err != nil || n != command.want {
				t.Errorf("%s: %d tasks, error %v; want %d", command.Do, n, err, command.want)
			}
			drained() // the tasks that come after a forgotten task are cancelled
		}
	})
}

// Other calls proceed while a search reads rows.
func TestC4_FindReadsWithoutTheLock(t *testing.T) {
	r := &pausedRows{rows: newRows(), entered: make(chan struct{}, 10)}
	m := openOn(t, r)
	var ids queue.IDs
	submit(t, m, newTask(&ids, queue.Spec{}))
	asked := false
	r.left, r.then = 1, func() {
		_, err := m.Stats(t.Context(), start) // the call would block for ever
		asked = err == nil
	}
	for range 2 {
		if found, err := m.Find(t.Context(), queue.Filter{Kind: "kind"}, queue.Page{}); err != nil || len(found) != 1 {
			t.Errorf("found %v, error %v", found, err)
		}
	}
	if !asked {
		t.Error("no row was read")
	}
}

// closingRows record whether they are read while they are closed.
type closingRows struct {
	*rows
	reading atomic.Bool
	while   bool
	then    func() // in the middle of a read
}

func (r *closingRows) Get(key string) ([]byte, error) {
	r.reading.Store(true)
	defer r.reading.Store(false)
	if then := r.then; then != nil {
		r.then = nil
		then()
	}
	return r.rows.Get(key)
}

func (r *closingRows) Close() error {
	r.while = r.reading.Load()
	return nil
}

// Close waits for searches that read rows without the lock.
func TestC4_CloseWaitsForASearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &closingRows{rows: newRows()}
		m := openOn(t, r)
		var ids queue.IDs
		submit(t, m, newTask(&ids, queue.Spec{}))
		closed := make(chan error, 1)
		r.then = func() {
			go func() { closed <- m.Close() }()
			synctest.Wait()
		}
		if _, err := m.Find(t.Context(), queue.Filter{Kind: "kind"}, queue.Page{}); !errors.Is(err, queue.ErrClosed) {
			t.Errorf("error %v, want %v", err, queue.ErrClosed)
		}
		if err := <-closed; err != nil || r.while {
			t.Errorf("error %v; closed while a row was read: %v", err, r.while)
		}
	})
}

// asking are rows that call the machine whenever a row is read.
type asking struct {
	*rows
	ask func()
}

func (r *asking) Get(key string) ([]byte, error) {
	if r.ask != nil {
		r.ask()
	}
	return r.rows.Get(key)
}

// A search for an error reads rows without the lock, so other calls proceed.
func TestC4_FindByErrorDelaysNoOtherCall(t *testing.T) {
	r := &asking{rows: newRows()}
	m, err := machine.Open(r, machine.Config{Epoch: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ids queue.IDs
	submit(t, m, newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{}))
	asked := 0
	r.ask = func() {
		asked++
		if _, err := m.Settings(t.Context()); err != nil { // the call needs the lock
			t.Error(err)
		}
	}
	found, err := m.Find(t.Context(), queue.Filter{Error: "none"}, queue.Page{})
	if err != nil || len(found) != 0 || asked != 2 {
		t.Errorf("%d tasks are found with %d rows read, %v", len(found), asked, err)
	}
}

// A search whose context has ended visits no more tasks.
func TestC4_FindEndsWithItsContext(t *testing.T) {
	m := open(t, newRows())
	var ids queue.IDs
	submit(t, m, newTask(&ids, queue.Spec{}))
	gone := errors.New("the caller has gone")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(gone)
	none := queue.Filter{Labels: map[string]string{"label": "none"}}
	found, err := m.Find(ctx, none, queue.Page{})
	if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, gone) || found != nil {
		t.Errorf("Find with a context that has ended returns %d tasks, error %v", len(found), err)
	}
	if _, err := m.Find(t.Context(), none, queue.Page{}); err != nil {
		t.Error(err)
	}
}
