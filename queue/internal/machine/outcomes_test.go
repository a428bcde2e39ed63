package machine_test

import (
	"errors"
	"testing"

	"github.com/stintgo/stint/queue"
)

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
