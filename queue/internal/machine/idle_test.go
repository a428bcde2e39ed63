package machine_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

const day = 24 * time.Hour

func maintainAt(t *testing.T, m *machine.Machine, at time.Time) {
	t.Helper()
	if _, err := m.Maintain(t.Context(), at, 0); err != nil {
		t.Fatal(err)
	}
}

// queuesOf returns the names of all queues.
func queuesOf(t *testing.T, m *machine.Machine) []string {
	t.Helper()
	s, err := m.Stats(t.Context(), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(s.Queues))
}

// cancelAll cancels the tasks of a queue.
func cancelAll(t *testing.T, m *machine.Machine, name string) {
	t.Helper()
	c := queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Queue: name}}
	if _, err := m.Command(t.Context(), start, c); err != nil {
		t.Fatal(err)
	}
}

// startOne starts a task of a queue, which counts against the rates of the queue and of a
// key.
func startOne(t *testing.T, m *machine.Machine, name string) {
	t.Helper()
	c, err := m.Claim(t.Context(), start, queue.Claim{
		Queue: name, Worker: "w", Kinds: []string{"kind"}, Max: 1, Lease: time.Minute,
	})
	if err != nil || len(c.Tasks) != 1 {
		t.Fatal(c, err)
	}
	o := []queue.Outcome{{ID: c.Tasks[0].ID, Token: c.Tasks[0].Lease.Token, Kind: queue.OutcomeSuccess}}
	if answers, err := m.Settle(t.Context(), start, o); err != nil || answers[0] != nil {
		t.Fatal(answers, err)
	}
}

// A queue is forgotten when it has had no tasks, settings, listeners or counted starts
// for a day. A queue of the same name is created again, next to the others.
func TestC10_QueuesOfNoUseAreForgotten(t *testing.T) {
	const inThreeDays = 1. / (3 * 24 * 60 * 60)
	for what, limits := range map[string]queue.Settings{
		"rate":     {Rate: queue.Rate{PerSecond: inThreeDays}},
		"key rate": {KeyRate: queue.Rate{PerSecond: inThreeDays}},
	} {
		t.Run(what, func(t *testing.T) { queuesAreForgotten(t, limits) })
	}
}

// only returns the change after which s has all settings of programs.
func only(s queue.Settings) queue.Change {
	set := func(f queue.Field) bool { return slices.Contains(s.Fields(), f) }
	return queue.Change{Set: s, Unset: slices.DeleteFunc(queue.Fields(), set)}
}

func queuesAreForgotten(t *testing.T, limits queue.Settings) {
	t.Helper()
	m := open(t, newRows())
	configure := func(name string, s queue.Settings) {
		t.Helper()
		if err := m.Configure(t.Context(), start, name, only(s)); err != nil {
			t.Fatal(err)
		}
	}
	there := func(at time.Duration, want ...string) {
		t.Helper()
		maintainAt(t, m, start.Add(at))
		if got := queuesOf(t, m); !slices.Equal(got, want) {
			t.Errorf("after %v there are %q, want %q", at, got, want)
		}
	}
	configure("", limits)
	configure("set", queue.Settings{Max: 1})
	_, stop := m.Listen("listened")
	var ids queue.IDs
	add := func(queues ...string) {
		t.Helper()
		for _, name := range queues {
			submit(t, m, newTask(&ids, queue.Spec{Options: queue.Options{Queue: name, Key: "k"}}))
		}
	}
	add("done", "gone", "listened", "set", "spent", "waits")
	startOne(t, m, "spent")
	for _, name := range []string{"done", "gone", "listened", "set"} {
		cancelAll(t, m, name)
	}
	there(day, "done", "gone", "listened", "set", "spent", "waits") // the tasks are forgotten
	there(2*day-1, "done", "gone", "listened", "set", "spent", "waits")
	add("done") // 1 ns before the queue is forgotten
	there(2*day, "done", "listened", "set", "spent", "waits")
	stop()
	cancelAll(t, m, "done") // so the day begins again
	configure("set", queue.Settings{})
	add("gone", "new")
	there(3*day, "done", "gone", "listened", "new", "set", "spent", "waits")
	there(4*day, "gone", "new", "spent", "waits")
	there(5*day, "gone", "new", "waits")
	for _, name := range []string{"gone", "new", "waits"} {
		found, err := m.Find(t.Context(), queue.Filter{Queue: name}, queue.Page{})
		if err != nil || len(found) != 1 || found[0].Queue != name {
			t.Errorf("queue %s has %+v, error %v", name, found, err)
		}
	}
}

// Names of queues in calls that are refused take no memory.
func TestC10_RefusedSubmitMakesNoQueue(t *testing.T) {
	m := open(t, newRows())
	if err := m.Configure(t.Context(), start, "", queue.Change{Set: queue.Settings{Pending: 1}}); err != nil {
		t.Fatal(err)
	}
	var ids queue.IDs
	_, err := m.Submit(t.Context(), start, numbered(&ids, 2, queue.Spec{Options: queue.Options{Queue: "new"}}))
	if !errors.Is(err, queue.ErrFull) {
		t.Errorf("two tasks where one may be are answered %v", err)
	}
	if got := queuesOf(t, m); len(got) > 0 {
		t.Errorf("there are %q", got)
	}
}
