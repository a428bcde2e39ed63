//go:build linux

package crashtest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
	"github.com/stintgo/stint/queue/httpstore"
)

// kills is how many processes a test kills. make torture repeats the test.
const kills = 300

// patience is how long to wait for events that must happen. It is long enough for busy
// machines.
const patience = 2 * time.Minute

// TestC6_KilledProcesses kills and stops the processes of a queue at random while tasks
// are submitted, fail, are snoozed, wait for each other and have limits. Afterwards every
// accepted task has ended once, as planned; each run of a handler had a lease of its own;
// no lease was taken from a worker before it expired; no limit was exceeded; and as many
// tasks run at once as the limits allow.
func TestC6_KilledProcesses(t *testing.T) {
	rnd := seeded.Rand(t)
	dir := t.TempDir()
	f := startFleet(t, &fleet{dir: dir}, append([]string{isServer}, slices.Repeat([]string{isWorker}, workers)...)...)
	store := configured(t, filepath.Join(dir, socketFile))
	l := newLedger()
	harass(t, f, func() bool { return f.kills < kills }, []string{filepath.Join(dir, socketFile)}, l, rnd, strike)
	began := time.Now()
	drain(t, store, 0)
	t.Logf("%d processes were killed; what was left took %s", f.kills, time.Since(began).Round(time.Millisecond))
	allSlots(t, store, dir, l)
	limit(t, store) // what Stats returns may not be durable; the answers after it are, and so is what they depend on
	f.end()
	left, err := filestore.Open(filepath.Join(dir, storeDir), filestore.Config{})
	if err != nil {
		t.Fatal(err)
	}
	checkStore(t, f, left, dir, l)
}

// configured sets the limits as soon as a server answers.
func configured(t *testing.T, socket string) *httpstore.Store {
	t.Helper()
	store, err := httpstore.Open("unix:"+socket, httpstore.Config{Patience: patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	limit(t, store)
	return store
}

func limit(t *testing.T, store queue.Store) {
	t.Helper()
	limits := queue.Settings{Max: queueMax, PerKey: keyMax, Pending: 300}
	if err := store.Configure(t.Context(), time.Now(), "", queue.Change{Set: limits}); err != nil {
		t.Fatal(err)
	}
}

// harass strikes at the processes as long as more returns true, while tasks are submitted at
// sockets.
func harass(
	t *testing.T, f *fleet, more func() bool, sockets []string, l *ledger, rnd *rand.Rand,
	strike func(*fleet, *rand.Rand),
) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var submitting sync.WaitGroup
	for range 2 {
		s, err := newSubmitter(sockets, l, rand.New(rand.NewPCG(rnd.Uint64(), 0)))
		if err != nil {
			t.Fatal(err)
		}
		submitting.Go(func() {
			if err := s.run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	defer submitting.Wait()
	defer stop()
	for more() && !t.Failed() {
		if err := pause(ctx, time.Duration(rnd.Int64N(int64(250*time.Millisecond)))); err != nil {
			t.Fatal(err)
		}
		strike(f, rnd)
	}
}

// strike kills or stops one or two processes. The server lives about as long as two
// leases: the leases of other processes start again with the server, so if it were killed
// more often, the leases of dead workers would never expire.
func strike(f *fleet, rnd *rand.Rand) {
	f.t.Helper()
	worker := 1 + rnd.IntN(workers)
	switch n := rnd.IntN(100); {
	case n < 8:
		f.restart(0)
	case n < 11: // at the same time
		f.kill(worker)
		f.restart(0)
		f.start(worker)
	case n < 14:
		f.stop(0, time.Duration(rnd.Int64N(int64(lease/2))))
	case n < 24:
		f.stop(worker, lease+time.Duration(rnd.Int64N(int64(lease))))
	default:
		f.restart(worker)
	}
}

// drain waits until the number of unfinished tasks is left.
func drain(t *testing.T, store queue.Store, left int) {
	t.Helper()
	wait(t, store, "nothing is left to do", func(c queue.Counts) bool {
		unfinished := 0
		for state, n := range c.States {
			if !state.Finished() {
				unfinished += n
			}
		}
		return unfinished == left
	})
}

// wait waits until the counts of the queue satisfy so.
func wait(t *testing.T, store queue.Store, what string, so func(queue.Counts) bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for {
		st, err := store.Stats(ctx, time.Now())
		if err == nil && so(st.Queues["default"]) {
			return
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			t.Fatalf("it does not come that %s; there are %+v\n%s", what, st.Queues, describe(t, store))
		}
	}
}

// describe formats what a store says about its processes and about the tasks that have not
// ended.
func describe(t *testing.T, store queue.Store) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	var b strings.Builder
	st, err := store.Stats(ctx, time.Now())
	fmt.Fprintf(&b, "statistics: %v\nleader: %+v\nnodes: %+v\nworkers: %+v\n", err, st.Lead, st.Nodes, st.Workers)
	tasks, err := everything(ctx, store)
	fmt.Fprintf(&b, "tasks: %v\n", err)
	for i := range tasks {
		if task := &tasks[i]; !task.State.Finished() {
			reasons, err := store.Explain(ctx, time.Now(), task.ID)
			fmt.Fprintf(&b, "%s %s %s %+v\n\t%+v\n", task.ID, task.State, task.Key, task.Lease, task.Steps)
			fmt.Fprintf(&b, "\t%v %v\n", reasons, err)
		}
	}
	return b.String()
}

// allSlots checks that as many tasks run at once as the limits allow: no slot of the
// queue or of a key was leaked.
func allSlots(t *testing.T, store *httpstore.Store, dir string, l *ledger) {
	t.Helper()
	s := &submitter{ledger: l, stores: []queue.Store{store}}
	release := filepath.Join(dir, releaseFile)
	for _, keys := range []int{0, queueMax / keyMax} {
		var tasks []queue.NewTask
		var plans []plan
		for i := range 2 * queueMax {
			spec := queue.Spec{Options: queue.Options{MaxAttempts: attempts, MaxCrashes: 1000}}
			if keys > 0 {
				spec.Key = fmt.Sprint("key-", i%keys)
			}
			p := plan{Holds: true}
			tasks, plans = append(tasks, planned(s.ids.New(time.Now()), p, spec)), append(plans, p)
		}
		if err := s.submit(t.Context(), tasks, plans); err != nil {
			t.Fatal(err)
		}
		wait(t, store, "all slots are in use", func(c queue.Counts) bool { return c.States[queue.Running] == queueMax })
		if err := os.WriteFile(release, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		drain(t, store, 0)
		if err := os.Remove(release); err != nil {
			t.Fatal(err)
		}
	}
}

// checkStore compares the store, which it closes, with the records after all processes have
// ended.
func checkStore(t *testing.T, f *fleet, store queue.Store, dir string, l *ledger) {
	t.Helper()
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	tasks, findErr := everything(t.Context(), store)
	log, logErr := readLog(filepath.Join(dir, logFile))
	runs, runsErr := runsOf(log, f.died)
	if err := errors.Join(findErr, logErr, runsErr); err != nil {
		t.Fatal(err)
	}
	e := &evidence{tasks: tasks, plans: l.plans, runs: runs, died: f.died}
	t.Log(e.summary())
	const enough = 10 // errors to print
	for i, err := range e.verify() {
		if i == enough {
			break
		}
		t.Error(err)
	}
	st, err := store.Stats(t.Context(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	counted := make(map[queue.State]int)
	for i := range tasks {
		counted[tasks[i].State]++
	}
	if got := st.Queues["default"].States; !maps.Equal(got, counted) {
		t.Errorf("the store counts %v, and has %v", got, counted)
	}
}

func everything(ctx context.Context, store queue.Store) (all []queue.Task, err error) {
	for page := (queue.Page{Limit: 500}); ; {
		tasks, err := store.Find(ctx, queue.Filter{}, page)
		if err != nil {
			return nil, err
		}
		if all = append(all, tasks...); len(tasks) < page.Limit {
			return all, nil
		}
		page.After = tasks[len(tasks)-1].ID
	}
}
