package machine_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// steppedRows keep a copy of the rows after every batch, and the size of the largest
// batch. If a caller waits for each of its calls, each step is a batch.
type steppedRows struct {
	*rows
	keep      bool // keep copies
	largest   int  // changes of a batch
	mostBytes int  // of a batch
	crashes   []*rows
}

func (r *steppedRows) Apply(batch []machine.Change) error {
	r.largest = max(r.largest, len(batch))
	size := 0
	for _, c := range batch {
		size += len(c.Value)
	}
	r.mostBytes = max(r.mostBytes, size)
	if r.keep {
		defer func() { r.crashes = append(r.crashes, &rows{all: maps.Clone(r.all)}) }()
	}
	return r.rows.Apply(batch)
}

// mostChanges is the largest number of rows that one step may change in these tests.
const mostChanges = 300

// wide is something that very many tasks wait for: first ends it, and state is the state
// of the tasks after that.
type wide struct {
	name   string
	spec   func(first queue.NewTask) queue.Spec
	on     queue.OutcomeKind // the outcome or command that ends the first task
	purged bool              // the first task is then purged
	then   queue.State
}

func wides() []wide {
	after := func(first queue.NewTask) queue.Spec {
		return queue.Spec{Kind: "many", Options: queue.Options{After: []queue.ID{first.ID}}}
	}
	return []wide{
		{"success", after, queue.OutcomeSuccess, false, queue.Waiting},
		{"purge", after, queue.OutcomeFailure, true, queue.Cancelled},
		{"any outcome", func(first queue.NewTask) queue.Spec {
			return queue.Spec{Kind: "many", Options: queue.Options{AfterAny: []queue.ID{first.ID}}}
		}, queue.OutcomeFailure, false, queue.Waiting},
		{"batch", func(first queue.NewTask) queue.Spec {
			return queue.Spec{Kind: "many", Options: queue.Options{AfterBatch: first.Batch}}
		}, queue.OutcomeFailure, false, queue.Waiting},
	}
}

// submitWide submits a task and n others that wait for it.
func submitWide(t *testing.T, m *machine.Machine, w wide, n int) (first queue.NewTask, tasks []queue.NewTask) {
	t.Helper()
	var ids queue.IDs
	first = newTask(&ids, queue.Spec{Options: queue.Options{Batch: ids.New(start)}})
	submit(t, m, first)
	for range n {
		tasks = append(tasks, newTask(&ids, w.spec(first)))
	}
	for i := 0; i < n; i += 100 {
		submit(t, m, tasks[i:min(i+100, n)]...)
	}
	return first, tasks
}

// end ends the first task, and purges it if the others wait for that.
func (w wide) end(t *testing.T, m *machine.Machine, first queue.NewTask) {
	t.Helper()
	task := claim(t, m, 1)[0]
	o := queue.Outcome{ID: task.ID, Token: task.Lease.Token, Kind: w.on, Permanent: true}
	if answers, err := m.Settle(t.Context(), start, []queue.Outcome{o}); err != nil || answers[0] != nil {
		t.Fatal(err, answers)
	}
	if w.purged {
		c := queue.Command{Do: queue.OrderForget, Filter: queue.Filter{IDs: []queue.ID{first.ID}}}
		if n, err := m.Command(t.Context(), start, c); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
}

// steps returns the number of batches that end writes.
func (w wide) steps() int {
	if w.purged {
		return 2
	}
	return 1
}

// count returns the number of tasks by state.
func count(t *testing.T, m *machine.Machine, f queue.Filter) map[queue.State]int {
	t.Helper()
	states := make(map[queue.State]int)
	found, err := m.Find(t.Context(), f, queue.Page{Limit: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		states[found[i].State]++
	}
	return states
}

// drained returns when drain has nothing left to do, in the time of a bubble.
func drained() {
	time.Sleep(time.Minute)
	synctest.Wait() // its changes can be read
}

// However many tasks wait for one, no step changes more than a few hundred rows, the
// first of them are released at once, and all are in the end.
func TestC12_DependentsGoOnInBoundedSteps(t *testing.T) {
	const n = 5000
	for _, w := range wides() {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer drained()
				r := &steppedRows{rows: newRows()}
				m := openOn(t, r)
				first, _ := submitWide(t, m, w, n)
				r.largest = 0
				r.gate = make(chan struct{}, n)
				for range w.steps() {
					r.gate <- struct{}{}
				}
				w.end(t, m, first)
				if got := count(t, m, queue.Filter{Kind: "many"})[w.then]; got == 0 || got > mostChanges {
					t.Errorf("after the call %d tasks of %d are %s", got, n, w.then)
				}
				close(r.gate)
				drained()
				if got := count(t, m, queue.Filter{Kind: "many"}); got[w.then] != n {
					t.Errorf("in the end the tasks are %v, want %d %s", got, n, w.then)
				}
				if r.largest > mostChanges {
					t.Errorf("one step changes %d rows", r.largest)
				}
			})
		})
	}
}

// A chain, of which each task waits for the one before, is cancelled in bounded steps
// too.
func TestC12_ChainIsCancelledInBoundedSteps(t *testing.T) {
	const n = 3000
	synctest.Test(t, func(t *testing.T) {
		defer drained()
		r := &steppedRows{rows: newRows()}
		m := openOn(t, r)
		var ids queue.IDs
		chain := []queue.NewTask{newTask(&ids, queue.Spec{})}
		for range n {
			after := queue.Options{After: []queue.ID{chain[len(chain)-1].ID}}
			chain = append(chain, newTask(&ids, queue.Spec{Kind: "many", Options: after}))
		}
		submit(t, m, chain...)
		r.largest = 0
		wide{on: queue.OutcomeFailure, purged: true}.end(t, m, chain[0])
		drained()
		if got := count(t, m, queue.Filter{}); got[queue.Cancelled] != n {
			t.Errorf("the tasks are %v, want %d cancelled", got, n)
		}
		if r.largest > mostChanges {
			t.Errorf("one step changes %d rows", r.largest)
		}
		for key := range r.all {
			if key[0] != 't' {
				t.Errorf("there is a row %q", key)
			}
		}
	})
}

// However large tasks are, no step writes more than a few MiB of them. A command that has to
// read the rows before it changes the first one keeps less in memory.
func TestC12_LargeTasksChangeInBoundedSteps(t *testing.T) {
	const n, large, most, mostKept = 40, 256 << 10, 5 << 20, 5 << 18
	due := start.Add(time.Minute)
	command := func(c queue.Command) func(t *testing.T, m *machine.Machine, first queue.NewTask) {
		return func(t *testing.T, m *machine.Machine, _ queue.NewTask) {
			t.Helper()
			if changed, err := m.Command(t.Context(), start, c); err != nil || changed != n {
				t.Errorf("the command changes %d tasks, error %v", changed, err)
			}
		}
	}
	maintain := func(t *testing.T, m *machine.Machine, _ queue.NewTask) {
		t.Helper()
		maintainAt(t, m, due)
	}
	for _, c := range []struct {
		name string
		spec func(first queue.NewTask) queue.Options // of the tasks
		do   func(t *testing.T, m *machine.Machine, first queue.NewTask)
		then queue.State
		most int // bytes that a step writes
	}{
		{
			"command by kind", nil, command(queue.Command{Do: queue.OrderPause, Filter: queue.Filter{Kind: "large"}}),
			queue.Paused, mostKept,
		},
		{
			"command by queue", nil, command(queue.Command{Do: queue.OrderCancel, Filter: queue.Filter{Queue: "large"}}),
			queue.Cancelled, most,
		},
		{
			"due", func(queue.NewTask) queue.Options { return queue.Options{RunAt: due} }, maintain, queue.Waiting, most,
		},
		{
			"deadlines", func(queue.NewTask) queue.Options { return queue.Options{Deadline: due} },
			func(t *testing.T, m *machine.Machine, _ queue.NewTask) {
				t.Helper()
				claim := queue.Claim{Queue: "large", Worker: "w", Kinds: []string{"large"}, Max: 1, Lease: time.Minute}
				if got, err := m.Claim(t.Context(), due, claim); err != nil || len(got.Tasks) != 0 {
					t.Errorf("claimed %d tasks, error %v", len(got.Tasks), err)
				}
				configure(t, m, queue.Settings{Max: 1}) // waits until the last step of the claim is durable
			}, queue.Dead, most,
		},
		{
			"leases", nil, func(t *testing.T, m *machine.Machine, first queue.NewTask) {
				t.Helper()
				claim := queue.Claim{Queue: "large", Worker: "w", Kinds: []string{"large"}, Max: n, Lease: time.Second}
				if got, err := m.Claim(t.Context(), start, claim); err != nil || len(got.Tasks) != n {
					t.Errorf("claimed %d tasks, error %v", len(got.Tasks), err)
				}
				maintain(t, m, first)
			}, queue.Waiting, most,
		},
		{
			"success", func(first queue.NewTask) queue.Options { return queue.Options{After: []queue.ID{first.ID}} },
			wide{on: queue.OutcomeSuccess}.end, queue.Waiting, most,
		},
		{
			"purge", func(first queue.NewTask) queue.Options { return queue.Options{After: []queue.ID{first.ID}} },
			wide{on: queue.OutcomeFailure, purged: true}.end, queue.Cancelled, most,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer drained()
				r := &steppedRows{rows: newRows()}
				m := openOn(t, r)
				var ids queue.IDs
				first := newTask(&ids, queue.Spec{})
				submit(t, m, first)
				for range n {
					s := queue.Spec{Kind: "large", Payload: make([]byte, large)}
					if c.spec != nil {
						s.Options = c.spec(first)
					}
					s.Queue = "large"
					submit(t, m, newTask(&ids, s))
				}
				r.mostBytes = 0
				c.do(t, m, first)
				drained()
				if got := count(t, m, queue.Filter{Kind: "large"}); got[c.then] != n {
					t.Errorf("the tasks are %v, want %d %s", got, n, c.then)
				}
				if r.mostBytes > c.most {
					t.Errorf("one step writes %d bytes", r.mostBytes)
				}
			})
		})
	}
}

// If a crash interrupts the release or the cancellation of very many tasks at any step,
// the next store completes it.
func TestC12_CrashBetweenPartsOfARelease(t *testing.T) {
	const n = 700
	for _, w := range wides() {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer drained()
				r := &steppedRows{rows: newRows()}
				m := openOn(t, r)
				first, _ := submitWide(t, m, w, n)
				r.keep = true
				w.end(t, m, first)
				drained()
				if len(r.crashes) < n/mostChanges {
					t.Fatalf("there were %d steps", len(r.crashes))
				}
				for i, left := range r.crashes {
					m := openOn(t, left)
					found, err := m.Find(t.Context(), queue.Filter{IDs: []queue.ID{first.ID}}, queue.Page{})
					if err != nil {
						t.Fatal(err)
					}
					want := w.then
					if len(found) == 1 && (w.purged || !found[0].State.Finished()) {
						want = queue.Held // its end, or its purge, is not durable
					}
					drained()
					if got := count(t, m, queue.Filter{Kind: "many"}); got[want] != n {
						t.Errorf("after step %d and a crash the tasks are %v, want %s", i, got, want)
					}
					if err := m.Close(); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// A task that was cancelled and retried while others are still to be cancelled is not
// cancelled again by a store that is opened meanwhile, and neither is a task that was
// submitted since.
func TestC12_RetriedTaskIsSparedByALateCascade(t *testing.T) {
	const n = 700
	synctest.Test(t, func(t *testing.T) {
		defer drained()
		r := newRows()
		m := openOn(t, r)
		var ids queue.IDs
		one, other := newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{Options: queue.Options{Queue: "other"}})
		submit(t, m, one, other)
		tasks := make([]queue.NewTask, n)
		for i := range tasks {
			tasks[i] = newTask(&ids, queue.Spec{Kind: "many", Options: queue.Options{After: []queue.ID{one.ID, other.ID}}})
		}
		submit(t, m, tasks...)
		die(t, m, start)
		r.gate = make(chan struct{})
		gatedCommand(t, m, r, start, queue.OrderForget, one.ID)
		gatedCommand(t, m, r, start.Add(time.Second), queue.OrderRetry, tasks[0].ID)
		if got := count(t, m, queue.Filter{})[queue.Cancelled]; got == n-1 {
			t.Fatal("all have been cancelled already")
		}
		// Another task has the ID of the forgotten one, and a task comes after it.
		after := queue.Options{After: []queue.ID{one.ID}}
		since := newTask(&ids, queue.Spec{Kind: "since", Options: after})
		gatedCall(r, func() { submit(t, m, queue.NewTask{ID: one.ID, Spec: queue.Spec{Kind: "again"}}, since) })
		m = openOn(t, r.crash())
		drained()
		if got := count(t, m, queue.Filter{Kind: "many"}); got[queue.Cancelled] != n-1 || got[queue.Held] != 1 {
			t.Errorf("the tasks are %v, want one held and all others cancelled", got)
		}
		if got := count(t, m, queue.Filter{Kind: "since"}); got[queue.Held] != 1 {
			t.Errorf("a task that was submitted since is %v, want held", got)
		}
		close(r.gate)
	})
}

// A delayed task that is started by a command while others are being cancelled with it is
// cancelled in its turn, also by a store that is opened meanwhile.
func TestC12_DelayedTaskIsNotSparedByALateCascade(t *testing.T) {
	const n = 700
	synctest.Test(t, func(t *testing.T) {
		defer drained()
		r := newRows()
		m := openOn(t, r)
		var ids queue.IDs
		one, other := newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{Options: queue.Options{Queue: "other"}})
		submit(t, m, one, other)
		tasks := make([]queue.NewTask, n)
		for i := range tasks {
			tasks[i] = newTask(&ids, queue.Spec{
				Kind: "many",
				Options: queue.Options{
					After: []queue.ID{one.ID, other.ID},
					RunAt: start.Add(time.Hour),
				},
			})
		}
		submit(t, m, tasks...)
		die(t, m, start)
		r.gate = make(chan struct{})
		gatedCommand(t, m, r, start, queue.OrderForget, one.ID)
		gatedCommand(t, m, r, start.Add(time.Second), queue.OrderRetry, tasks[n-1].ID)
		left := r.crash()
		if got := count(t, m, queue.Filter{})[queue.Cancelled]; got == n {
			t.Fatal("all have been cancelled already")
		}
		close(r.gate)
		drained()
		for store, m := range map[string]*machine.Machine{"same": m, "other": openOn(t, left)} {
			drained()
			if got := count(t, m, queue.Filter{Kind: "many"}); got[queue.Cancelled] != n {
				t.Errorf("in the %s store the tasks are %v, want all cancelled", store, got)
			}
		}
	})
}

// If very many tasks wait for their turn after a batch, none starts when a new task of
// the batch has been submitted, though most of them are not held yet.
func TestC12_BatchThatGrowsHoldsAtOnce(t *testing.T) {
	const n = 2000
	synctest.Test(t, func(t *testing.T) {
		defer drained()
		r := &steppedRows{rows: newRows()}
		m := openOn(t, r)
		var ids queue.IDs
		batch := ids.New(start)
		for range n / 100 {
			tasks := make([]queue.NewTask, 100)
			for i := range tasks {
				tasks[i] = newTask(&ids, queue.Spec{Options: queue.Options{AfterBatch: batch}})
			}
			submit(t, m, tasks...)
		}
		free := newTask(&ids, queue.Spec{})
		submit(t, m, free)
		ready, stop := m.Listen("")
		defer stop()
		r.largest = 0
		r.gate = make(chan struct{}, n)
		r.gate <- struct{}{}
		submit(t, m, newTask(&ids, queue.Spec{Kind: "of the batch", Options: queue.Options{Batch: batch}}))
		if got := count(t, m, queue.Filter{Kind: "kind"}); got[queue.Waiting] == 0 {
			t.Fatalf("the tasks are %v: all are held already", got)
		}
		select {
		case <-ready: // of the submits
		default:
		}
		if got := claim(t, m, n); len(got) > 0 {
			t.Errorf("%d tasks start before the batch is finished", len(got))
		}
		select {
		case <-ready: // to claim again: a task that is free may be behind the others
		default:
			t.Error("a claim that has not seen all tasks sends no signal")
		}
		close(r.gate)
		drained()
		if got := count(t, m, queue.Filter{Kind: "kind"}); got[queue.Held] != n || r.largest > mostChanges {
			t.Errorf("the tasks are %v, want all held but one; one step changes %d rows", got, r.largest)
		}
		if got := claim(t, m, n); len(got) != 1 || got[0].ID != free.ID {
			t.Errorf("%d tasks start, want the one that is free", len(got))
		}
	})
}

// A claim that meets very many tasks whose deadlines have passed expires a bounded number
// of them in each step, and starts the task behind them.
func TestC8_DeadlinesExpireInBoundedSteps(t *testing.T) {
	const n = 5000
	r := &steppedRows{rows: newRows()}
	m := openOn(t, r)
	var ids queue.IDs
	tasks := make([]queue.NewTask, n)
	for i := range tasks {
		tasks[i] = newTask(&ids, queue.Spec{Options: queue.Options{Deadline: start.Add(time.Second)}})
	}
	last := newTask(&ids, queue.Spec{})
	submit(t, m, append(tasks, last)...)
	r.largest = 0
	got := claimAt(t, m, start.Add(time.Minute), 10)
	if len(got) != 1 || got[0].ID != last.ID {
		t.Errorf("claimed %d tasks, want the one without a deadline", len(got))
	}
	submit(t, m, newTask(&ids, queue.Spec{Kind: "other"})) // writes changes for which no caller waits
	if r.largest > mostChanges {
		t.Errorf("one step changes %d rows", r.largest)
	}
	if got := count(t, m, queue.Filter{Kind: "kind"}); got[queue.Dead] != n {
		t.Errorf("the tasks are %v, want %d dead", got, n)
	}
}

// Leases that expire at the same time are ended in bounded steps by Maintain, and by no
// other call.
func TestC6_LeasesEndInBoundedSteps(t *testing.T) {
	const n = 5000
	r := &steppedRows{rows: newRows()}
	m := openOn(t, r)
	var ids queue.IDs
	tasks := make([]queue.NewTask, n)
	for i := range tasks {
		tasks[i] = newTask(&ids, queue.Spec{})
	}
	submit(t, m, tasks...)
	if got := claim(t, m, n); len(got) != n {
		t.Fatalf("claimed %d tasks", len(got))
	}
	late := start.Add(time.Hour)
	r.largest = 0
	if got := claimAt(t, m, late, n); len(got) > 0 {
		t.Errorf("claimed %d tasks before their leases have been ended", len(got))
	}
	if next, err := m.Maintain(t.Context(), late, 150); err != nil || !next.Equal(late) {
		t.Errorf("after a part Maintain has more to do at %v, %v, want at once", next, err)
	}
	if got := count(t, m, queue.Filter{}); got[queue.Running] != n-150 {
		t.Errorf("after 150 changes the tasks are %v", got)
	}
	maintainAt(t, m, late)
	if got := count(t, m, queue.Filter{}); got[queue.Waiting] != n {
		t.Errorf("the tasks are %v, want %d waiting", got, n)
	}
	if r.largest > mostChanges {
		t.Errorf("one step changes %d rows", r.largest)
	}
}
