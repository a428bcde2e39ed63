package machine_test

import (
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

func claimAt(t *testing.T, m *machine.Machine, at time.Time, n int) []queue.Task {
	t.Helper()
	c, err := m.Claim(t.Context(), at, queue.Claim{Worker: "w", Kinds: []string{"kind"}, Max: n, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return c.Tasks
}

// die makes the next task dead.
func die(t *testing.T, m *machine.Machine, at time.Time) {
	t.Helper()
	task := claimAt(t, m, at, 1)[0]
	answers, err := m.Settle(t.Context(), at, []queue.Outcome{
		{ID: task.ID, Token: task.Lease.Token, Kind: queue.OutcomeFailure, Permanent: true},
	})
	if err != nil || answers[0] != nil {
		t.Fatal(err, answers)
	}
}

func retryOf(t *testing.T, m *machine.Machine, id queue.ID) {
	t.Helper()
	n, err := m.Command(t.Context(), start, queue.Command{Do: queue.OrderRetry, Filter: queue.Filter{IDs: []queue.ID{id}}})
	if n != 1 || err != nil {
		t.Fatalf("retry changed %d tasks, error %v", n, err)
	}
}

// If the clock of a reopened store is behind the finished tasks, they are still forgotten
// in the order in which they finished.
func TestC6_ReopenWithAClockThatIsBehind(t *testing.T) {
	r := newRows()
	m := open(t, r)
	var ids queue.IDs
	late := start.Add(time.Hour)
	first := newTask(&ids, queue.Spec{})
	submit(t, m, first)
	die(t, m, late)
	m = open(t, r.crash())
	submit(t, m, newTask(&ids, queue.Spec{}))
	die(t, m, start)
	retryOf(t, m, first.ID)
	const years = 365 * 24 * time.Hour
	if _, err := m.Maintain(t.Context(), late.Add(years), 0); err != nil {
		t.Error(err)
	}
	if _, err := m.Submit(t.Context(), late.Add(years), []queue.NewTask{newTask(&ids, queue.Spec{})}); err != nil {
		t.Errorf("nothing is accepted any more: %v", err)
	}
}

// If a task of a group ran elsewhere while the store was closed, it continues before an
// older task of the group that was retried meanwhile. A lost one does not.
func TestC12_GroupAfterReopen(t *testing.T) {
	for _, remote := range []bool{true, false} {
		groupAfterReopen(t, remote)
	}
}

func groupAfterReopen(t *testing.T, remote bool) {
	t.Helper()
	r := newRows()
	m := open(t, r)
	var ids queue.IDs
	grouped := queue.Spec{Options: queue.Options{Group: "g"}}
	older, younger := newTask(&ids, grouped), newTask(&ids, grouped)
	submit(t, m, older, younger)
	die(t, m, start)
	c, err := m.Claim(t.Context(), start, queue.Claim{
		Worker: "w", Kinds: []string{"kind"}, Max: 1, Lease: time.Minute, Remote: remote,
	})
	if err != nil {
		t.Fatal(err)
	}
	running := c.Tasks[0]
	heartbeat := []queue.Heartbeat{
		{ID: younger.ID, Token: running.Lease.Token, Lease: time.Minute, Checkpoint: []byte("so far")},
	}
	if _, err := m.Heartbeat(t.Context(), start, queue.Worker{Name: "w"}, heartbeat); err != nil {
		t.Fatal(err)
	}
	retryOf(t, m, older.ID)
	m = open(t, r.crash())
	started := claimAt(t, m, start, 5)
	switch {
	case remote && len(started) != 0:
		t.Errorf("%d tasks of the group start while one runs", len(started))
	case !remote && (len(started) != 1 || started[0].ID != older.ID):
		t.Errorf("of the group start %v, and not the older one alone", started)
	}
}

// If a crash interrupts the end and the removal of a task at any write, a successor is
// released if the task had succeeded, cancelled if it had not, and waits otherwise.
func TestC12_DependencyIsForgottenAtACrash(t *testing.T) {
	for _, on := range []queue.OutcomeKind{queue.OutcomeSuccess, queue.OutcomeFailure} {
		ends := map[queue.State]bool{}
		for _, lost := range []bool{true, false} {
			ends[forgottenAtACrash(t, on, 1, lost)] = true
			ends[forgottenAtACrash(t, on, 2, lost)] = true
		}
		if len(ends) != 3 {
			t.Errorf("after %s, crashes find the first task in the states %v", on, ends)
		}
	}
}

// forgottenAtACrash returns the state of the first task, 0 if it is forgotten, after a
// crash in a write from its end on, which is lost or not.
func forgottenAtACrash(t *testing.T, on queue.OutcomeKind, write int, lost bool) queue.State {
	t.Helper()
	r := newRows()
	m := open(t, r)
	var ids queue.IDs
	first := newTask(&ids, queue.Spec{})
	then := newTask(&ids, queue.Spec{Options: queue.Options{After: []queue.ID{first.ID}}})
	submit(t, m, first, then)
	token := claimAt(t, m, start, 1)[0].Lease.Token
	r.breakAt(write)
	if r.batches = write % 2; !lost { // see breakAt
		r.batches++
	}
	_, _ = m.Settle(t.Context(), start, []queue.Outcome{{ID: first.ID, Token: token, Kind: on, Permanent: true}})
	_, _ = m.Command(t.Context(), start, queue.Command{Do: queue.OrderForget, All: true})
	m = open(t, r.crash())
	found, err := m.Find(t.Context(), queue.Filter{IDs: []queue.ID{then.ID, first.ID}}, queue.Page{Newest: true})
	if err != nil {
		t.Fatal(err)
	}
	was := queue.State(0)
	if len(found) == 2 {
		was = found[1].State
	}
	want := queue.Held
	switch {
	case was == queue.Succeeded, was == 0 && on == queue.OutcomeSuccess:
		want = queue.Waiting
	case was == 0:
		want = queue.Cancelled
	}
	if got := found[0].State; got != want {
		t.Errorf("write %d, lost %t: the first task is %s, and the one after it %s; want %s", write, lost, was, got, want)
	}
	return was
}
