package machine_test

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// The row of an outcome is removed when it is accepted, and when it is that of no lease.
// A fence stays as long as the lease.
func TestC11_RowsOfOutcomesAndFences(t *testing.T) {
	r := newRows()
	m := open(t, r)
	transactions := machine.NewTxOutcomes(m)
	var ids queue.IDs
	submit(t, m, newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{}))
	tasks := claim(t, m, 3)
	outcome := func(task *queue.Task) queue.Outcome {
		return queue.Outcome{ID: task.ID, Token: task.Lease.Token, Kind: queue.OutcomeSuccess, InTx: true}
	}
	write := func(key string, value []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.all[key] = value
	}
	writes := func(o queue.Outcome) (key string) {
		key, value, err := machine.OutcomeRow(o, start, 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		write(key, append(binary.BigEndian.AppendUint64(nil, uint64(start.UnixMicro())), value...))
		return key
	}
	wantKeys := func(want ...string) {
		t.Helper()
		if got, err := transactions.Keys("", 10); err != nil || !slices.Equal(got, want) {
			t.Errorf("the rows are %q, want %q, error %v", got, want, err)
		}
	}
	other := outcome(&tasks[1])
	other.Token += 100 // an attempt that there was not
	keys := []string{writes(outcome(&tasks[0])), writes(other)}
	wantKeys(keys...)
	for i, want := range []error{nil, queue.ErrStale} {
		answers, err := transactions.Accept(t.Context(), start, keys[i:i+1])
		if err != nil || len(answers) != 1 || !errors.Is(answers[0], want) {
			t.Errorf("answers %v, error %v, want %v", answers, err, want)
		}
		wantKeys(keys[i+1:]...)
	}
	l := machine.Lease{ID: tasks[2].ID, Token: tasks[2].Lease.Token}
	fence := machine.OutcomeKey(l)
	write(fence, []byte{})
	for _, running := range []bool{true, false} {
		if running != transactions.Runs(l) {
			t.Errorf("Runs returns %t", !running)
		}
		if err := transactions.RecordFences(t.Context(), []string{fence}); err != nil {
			t.Fatal(err)
		}
		wantKeys(fence)
	}
	settled := []queue.Outcome{outcome(&tasks[2])}
	if answers, err := m.Settle(t.Context(), start, settled); err != nil || answers[0] != nil {
		t.Fatal(answers, err)
	}
	if err := transactions.RecordFences(t.Context(), []string{fence}); err != nil {
		t.Fatal(err)
	}
	wantKeys()
}

// The outcome that a transaction has written counts: the one that the handler returns afterwards
// is accepted, whatever it is, and changes nothing. Without a transaction it is stale.
func TestC11_OutcomeAfterThatOfTheTransaction(t *testing.T) {
	for _, written := range []queue.Outcome{
		{Kind: queue.OutcomeSuccess},
		{Kind: queue.OutcomeFailure, RunAt: start},
		{Kind: queue.OutcomeFailure, Permanent: true},
		{Kind: queue.OutcomeSnooze, RunAt: start},
		{Kind: queue.OutcomeRelease},
	} {
		m := open(t, newRows())
		var ids queue.IDs
		submit(t, m, newTask(&ids, queue.Spec{}))
		task := claim(t, m, 1)[0]
		settle := func(o queue.Outcome) error {
			o.ID, o.Token = task.ID, task.Lease.Token
			answers, err := m.Settle(t.Context(), start, []queue.Outcome{o})
			return errors.Join(err, answers[0])
		}
		if err := settle(written); err != nil {
			t.Fatal(err)
		}
		state := func() queue.State {
			found, err := m.Find(t.Context(), queue.Filter{}, queue.Page{})
			if err != nil || len(found) != 1 {
				t.Fatalf("found %d tasks, error %v", len(found), err)
			}
			return found[0].State
		}
		was := state()
		returned := queue.Outcome{Kind: queue.OutcomeSuccess}
		if written.Kind == queue.OutcomeSuccess {
			returned = queue.Outcome{Kind: queue.OutcomeFailure, Permanent: true}
		}
		if err := settle(returned); !errors.Is(err, queue.ErrStale) {
			t.Errorf("%s, then %s: error %v, want %v", written.Kind, returned.Kind, err, queue.ErrStale)
		}
		returned.InTx = true
		if err := settle(returned); err != nil {
			t.Errorf("%s in a transaction, then %s: %v", written.Kind, returned.Kind, err)
		}
		if is := state(); is != was {
			t.Errorf("%s in a transaction, then %s: the task is %s, was %s", written.Kind, returned.Kind, is, was)
		}
	}
}
