//go:build linux

package crashtest_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// stoppedFor returns how long a leader is stopped, which is several times its lease. make
// torture stops it for longer than all other times of a node.
func stoppedFor() time.Duration {
	const usual, torture = 3 * time.Second, 30 * time.Second
	if os.Getenv("STINT_SEED") == "random" {
		return torture
	}
	return usual
}

// TestC11_StoppedLeader stops the leader, with tasks, for longer than its lease and those of
// its tasks. Others lead, run its tasks, and change the store. When it wakes up, it answers
// nothing that is out of date, also not to the calls that came while it was stopped, and the
// late results of its tasks are refused.
func TestC11_StoppedLeader(t *testing.T) {
	for name, start := range map[string]func(*testing.T) database{"PostgreSQL": postgres, "Redis": redisServer} {
		t.Run(name, func(t *testing.T) { stopLeader(t, start(t)) })
	}
}

func stopLeader(t *testing.T, db database) {
	t.Helper()
	t.Cleanup(db.Stop)
	const places = 3
	dir := t.TempDir()
	f := startFleet(t, &fleet{dir: dir, url: db.DSN, lease: leaderLease}, slices.Repeat([]string{isNode}, places)...)
	var stores []*httpstore.Store
	for place := range places {
		stores = append(stores, configured(t, filepath.Join(dir, socketOf(f.members[place].name))))
	}
	l := newLedger()
	s := &submitter{ledger: l, stores: []queue.Store{stores[0]}}
	hold(t, s, queueMax+1)
	wait(t, stores[0], "all slots are in use", func(c queue.Counts) bool { return c.States[queue.Running] == queueMax })
	place := awaitLeader(t, f, stores[0], "")
	stopped, woken, other := f.members[place], stores[place], stores[(place+1)%places]

	began := now()
	signal(t, stopped, syscall.SIGSTOP)
	defer signal(t, stopped, syscall.SIGCONT) // if the test fails before
	awaitLeader(t, f, other, stopped.name)
	awaitTasks(t, other, "the tasks of the stopped node are lost", func(tasks []queue.Task) bool {
		return !slices.ContainsFunc(tasks, func(t queue.Task) bool {
			return t.State == queue.Running && t.Lease.Worker == stopped.name
		})
	})
	release(t, dir)
	drain(t, other, 0)
	if err := other.PauseQueue(t.Context(), time.Now(), queue.DefaultQueue, &queue.Pause{Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	s.stores = []queue.Store{other}
	kept := planned(s.ids.New(time.Now()), plan{}, queue.Spec{Options: queue.Options{Unique: "once"}})
	if err := s.submit(t.Context(), []queue.NewTask{kept}, []plan{{}}); err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	calls.Go(func() { upToDate(t, woken, s, kept, stopped.name) })
	_ = pause(t.Context(), stoppedFor()-time.Duration(now()-began))
	signal(t, stopped, syscall.SIGCONT)
	calls.Wait()
	upToDate(t, woken, s, kept, stopped.name)
	refusedResults(t, other, dir, stopped.name)

	if err := woken.PauseQueue(t.Context(), time.Now(), queue.DefaultQueue, nil); err != nil {
		t.Fatal(err)
	}
	drain(t, woken, 0)
	if err := os.Remove(filepath.Join(dir, releaseFile)); err != nil {
		t.Fatal(err)
	}
	allSlots(t, woken, dir, l)
	limit(t, woken)
	f.end()
	checkStore(t, f, lastLeader(t, db.DSN), dir, l)
}

// hold submits tasks that wait for the release file.
func hold(t *testing.T, s *submitter, n int) {
	t.Helper()
	var tasks []queue.NewTask
	plans := slices.Repeat([]plan{{Holds: true}}, n)
	for range n {
		spec := queue.Spec{Options: queue.Options{MaxAttempts: attempts, MaxCrashes: 1000}}
		tasks = append(tasks, planned(s.ids.New(time.Now()), plans[0], spec))
	}
	if err := s.submit(t.Context(), tasks, plans); err != nil {
		t.Fatal(err)
	}
}

func release(t *testing.T, dir string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, releaseFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func signal(t *testing.T, m *member, sig syscall.Signal) {
	t.Helper()
	if err := m.cmd.Process.Signal(sig); err != nil && sig == syscall.SIGSTOP {
		t.Fatal(err)
	}
}

// awaitLeader waits until a node leads that has another name than not, and returns its
// place.
func awaitLeader(t *testing.T, f *fleet, store queue.Store, not string) int {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for {
		if place := leaderOf(f, store); place >= 0 && f.members[place].name != not {
			return place
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			t.Fatal("no node leads")
		}
	}
}

// awaitTasks waits until the tasks of a store satisfy so.
func awaitTasks(t *testing.T, store queue.Store, what string, so func([]queue.Task) bool) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for {
		tasks, err := everything(ctx, store)
		if err == nil && so(tasks) {
			return
		}
		if pause(ctx, 50*time.Millisecond) != nil {
			t.Fatalf("it does not come that %s; %v", what, err)
		}
	}
}

// upToDate checks the answers of a node that led before: what the next leader has accepted is
// found and is not accepted again, the queue is paused, and another node leads. Each call is
// repeated until it is answered.
func upToDate(t *testing.T, store *httpstore.Store, s *submitter, kept queue.NewTask, before string) {
	t.Helper()
	found := answered(t, func(ctx context.Context) ([]queue.Task, error) {
		return store.Find(ctx, queue.Filter{IDs: []queue.ID{kept.ID}}, queue.Page{})
	})
	if len(found) != 1 || found[0].State.Finished() {
		t.Errorf("the task that the next leader has accepted is found as %v", found)
	}
	again := kept
	again.ID = new(queue.IDs).New(time.Now())
	receipts := answered(t, func(ctx context.Context) ([]queue.Receipt, error) {
		return store.Submit(ctx, time.Now(), []queue.NewTask{again})
	})
	if len(receipts) != 1 || receipts[0].ID != kept.ID {
		t.Errorf("the receipt of a task with the same unique key is %+v", receipts)
	}
	stats := answered(t, func(ctx context.Context) (queue.Stats, error) { return store.Stats(ctx, time.Now()) })
	if stats.Lead == nil || stats.Lead.Name == before {
		t.Errorf("the leader is %+v, after that of %s was taken over", stats.Lead, before)
	}
	settings := answered(t, store.Settings)
	if settings[queue.DefaultQueue].Paused == nil {
		t.Errorf("the queue is not paused: %+v", settings)
	}
}

// answered repeats a call until it is answered.
func answered[T any](t *testing.T, call func(context.Context) (T, error)) (answer T) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for {
		answer, err := call(ctx)
		if err == nil {
			return answer
		}
		if pause(ctx, 20*time.Millisecond) != nil {
			t.Errorf("no answer: %v", err)
			return answer
		}
	}
}

// refusedResults waits until the handlers of a process have ended, and checks that none of
// their results was accepted: each lease was lost.
func refusedResults(t *testing.T, store queue.Store, dir, process string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for running := -1; running != 0; {
		if pause(ctx, 20*time.Millisecond) != nil {
			t.Fatalf("%d handlers of %s do not end", running, process)
		}
		log, err := readLog(filepath.Join(dir, logFile))
		if err != nil {
			t.Fatal(err)
		}
		running = 0
		for _, e := range log {
			switch {
			case e.Process != process:
			case e.What == begins:
				running++
			default:
				running--
			}
		}
	}
	tasks, err := everything(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	lost := 0
	for i := range tasks {
		for _, l := range leasesOf(&tasks[i]) {
			if l.process != process {
				continue
			}
			if lost++; l.end != queue.OnLost {
				t.Errorf("the lease %d of the stopped process for task %s has ended by %s", l.token, tasks[i].ID, l.end)
			}
		}
	}
	if lost == 0 {
		t.Errorf("%s had no task when it was stopped", process)
	}
}
