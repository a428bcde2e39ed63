package cluster_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/storetest"
)

// skewed is a node on a host with another clock, by which all of its calls are made.
type skewed struct {
	*cluster.Node
	now func() time.Time
}

func openSkewed(t *testing.T, opener cluster.Opener, name string, ahead time.Duration) skewed {
	t.Helper()
	now := func() time.Time { return time.Now().Add(ahead).UTC() }
	n, err := cluster.OpenSkewed(t.Context(), opener, cluster.Config{Name: name, Patience: time.Minute}, now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closes(t, n) })
	return skewed{n, now}
}

// TestC11_ClocksOfHosts: the clocks of two hosts are twenty minutes apart. What begins and
// what ends at some time does so when it should, as each host sees it, although the leader
// changes from one to the other.
func TestC11_ClocksOfHosts(t *testing.T) {
	const off, delay, lease = 10 * time.Minute, 3 * time.Second, 2 * time.Minute
	for _, k := range kinds {
		for _, ahead := range []time.Duration{off, -off} {
			t.Run(k.name+" leader "+ahead.String(), func(t *testing.T) {
				opener := k.opener(t, storetest.Config{})
				first, second := openSkewed(t, opener, "first", ahead), openSkewed(t, opener, "second", -ahead)
				var ids queue.IDs
				submit := func(at skewed, delay time.Duration) queue.ID {
					task := queue.NewTask{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "work"}}
					if delay > 0 {
						task.RunAt = at.now().Add(delay)
					}
					if _, err := at.Submit(t.Context(), at.now(), []queue.NewTask{task}); err != nil {
						t.Fatal(err)
					}
					return task.ID
				}
				claim := func(at skewed) []queue.Task {
					claimed, err := at.Claim(t.Context(), at.now(), queue.Claim{
						Worker: "w", Kinds: []string{"work"}, Max: 10, Lease: lease,
					})
					if err != nil {
						t.Fatal(err)
					}
					return claimed.Tasks
				}

				leased := submit(first, 0)
				if got := claim(first); len(got) != 1 || got[0].ID != leased {
					t.Fatalf("claimed %v", got)
				}
				began := time.Now()
				delayed := map[queue.ID]bool{submit(first, delay): true, submit(second, delay): true}
				closes(t, first.Node)

				// Find has no time of its caller, so its times are those of the process. Many
				// minutes of wrong clocks would end the lease at once or too late.
				for _, task := range found(t, second, leased) {
					if left := time.Until(task.Lease.Until); left > lease+time.Second || left < lease-time.Since(began)-time.Minute {
						t.Errorf("of a lease of %v are %v left after %v", lease, left, time.Since(began))
					}
				}
				await(t, "the delayed tasks to start", func() (saw string, ok bool) {
					if _, err := second.Maintain(t.Context(), second.now(), 100); err != nil {
						t.Fatal(err)
					}
					for _, task := range claim(second) {
						if !delayed[task.ID] {
							t.Fatalf("task %v was claimed although %v has a lease", task.ID, leased)
						}
						if early := delay - time.Since(began); early > time.Second {
							t.Errorf("task %v started %v before its time", task.ID, early)
						}
						delete(delayed, task.ID)
					}
					return "", len(delayed) == 0
				})
				for _, task := range found(t, second, leased) {
					if task.State != queue.Running {
						t.Errorf("the task with a lease of %v is %v after %v", lease, task.State, time.Since(began))
					}
				}
			})
		}
	}
}

// clockSlack is how exact the clock of the database is known, on a machine that is very slow. The
// clocks of the tests differ by much more.
const clockSlack = 10 * time.Second

// otherClock is a store on a database with another clock.
type otherClock struct {
	cluster.Store
	ahead time.Duration
}

func (s otherClock) Now() time.Time { return s.Store.Now().Add(s.ahead) }

// TestC11_ClockOfTheDatabase: what the leader and a follower submit is due by the clock of the
// database, from which those of both hosts differ.
func TestC11_ClockOfTheDatabase(t *testing.T) {
	const delay = time.Hour
	for _, k := range kinds {
		for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
			t.Run(k.name+" "+ahead.String(), func(t *testing.T) {
				opener := k.opener(t, storetest.Config{})
				var kept cluster.Store // of the leader
				with := func(ctx context.Context, self queue.Leader) (cluster.Store, error) {
					s, err := opener(ctx, self)
					if err != nil {
						return nil, err
					}
					kept = s
					return otherClock{s, ahead}, nil
				}
				leader := open(t, with, cluster.Config{Name: "leader"})
				follower := open(t, opener, cluster.Config{Name: "follower"})
				var ids queue.IDs
				for name, n := range map[string]*cluster.Node{"the leader": leader, "the follower": follower} {
					from := time.Now()
					task := queue.NewTask{ID: ids.New(from), Spec: queue.Spec{Kind: "work"}}
					task.RunAt = from.Add(delay)
					if _, err := n.Submit(t.Context(), from, []queue.NewTask{task}); err != nil {
						t.Fatal(err)
					}
					to := time.Now()
					found, err := kept.Find(t.Context(), queue.Filter{IDs: []queue.ID{task.ID}}, queue.Page{})
					if err != nil || len(found) != 1 {
						t.Fatalf("found %v, %v", found, err)
					}
					due := found[0].RunAt.Add(-delay - ahead)
					if due.Before(from.Add(-clockSlack)) || due.After(to.Add(clockSlack)) {
						t.Errorf("a task of %s is due %v late", name, due.Sub(from))
					}
				}
			})
		}
	}
}

// TestC11_NodesByOneClock: when the nodes were seen, and since when the leader leads, is by the clock of
// the host that asks.
func TestC11_NodesByOneClock(t *testing.T) {
	const off = 10 * time.Minute
	opener := kinds[1].opener(t, storetest.Config{})
	began := time.Now()
	leader, follower := openSkewed(t, opener, "leader", off), openSkewed(t, opener, "follower", -off)
	for name, at := range map[string]skewed{"leader": leader, "follower": follower} {
		await(t, "both nodes are known", func() (saw string, ok bool) {
			stats, err := at.Stats(t.Context(), at.now())
			if err != nil || stats.Lead == nil || stats.Lead.Name != "leader" {
				t.Fatalf("%+v, %v", stats, err)
			}
			from, to := began.Add(time.Until(at.now())-clockSlack), at.now().Add(clockSlack)
			if since := stats.Lead.Since; since.Before(from) || since.After(to) {
				t.Errorf("at the %s, the leader leads since %v, want %v to %v", name, since, from, to)
			}
			for _, n := range stats.Nodes {
				if n.Seen.Before(from) || n.Seen.After(to) {
					t.Errorf("at the %s, the %s was seen at %v, want %v to %v", name, n.Name, n.Seen, from, to)
				}
			}
			return "", len(stats.Nodes) == 2
		})
	}
}

// TestC11_ClockOfTheLeaderGoesWrong: the clocks of the leader's host and of the database agree
// when the leader begins, and differ later. From then on its own calls convert their times, as
// those of its followers do: a task is due at its time, and a lease keeps its length.
func TestC11_ClockOfTheLeaderGoesWrong(t *testing.T) {
	const delay, lease = time.Hour, time.Hour
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			var ahead atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())).UTC() }
			n, err := cluster.OpenSkewed(t.Context(), k.opener(t, storetest.Config{}), cluster.Config{Name: "leader"}, now)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closes(t, n) })
			at := skewed{n, now}
			var ids queue.IDs
			for _, off := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, 0} {
				ahead.Store(int64(off))
				kind, from := "work "+off.String(), time.Now()
				due := queue.NewTask{ID: ids.New(now()), Spec: queue.Spec{Kind: kind}}
				later := queue.NewTask{ID: ids.New(now()), Spec: queue.Spec{Kind: kind}}
				later.RunAt = now().Add(delay)
				if _, err := n.Submit(t.Context(), now(), []queue.NewTask{due, later}); err != nil {
					t.Fatal(err)
				}
				claimed, err := n.Claim(t.Context(), now(), queue.Claim{
					Worker: "w", Kinds: []string{kind}, Max: 2, Lease: lease,
				})
				to := time.Now()
				if err != nil || len(claimed.Tasks) != 1 || claimed.Tasks[0].ID != due.ID {
					t.Fatalf("%v ahead: claimed %v, %v", off, claimed.Tasks, err)
				}
				within := func(what string, got time.Time, after time.Duration) {
					earliest, latest := from.Add(after-clockSlack), to.Add(after+clockSlack)
					if got.Before(earliest) || got.After(latest) {
						t.Errorf("%v ahead: %s is at %v, want %v to %v", off, what, got, earliest, latest)
					}
				}
				within("the start of the later task", found(t, at, later.ID)[0].RunAt, delay)
				within("the end of the lease", found(t, at, due.ID)[0].Lease.Until, lease)
			}
		})
	}
}

func found(t *testing.T, at skewed, id queue.ID) []queue.Task {
	t.Helper()
	tasks, err := at.Find(t.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{})
	if err != nil || len(tasks) != 1 {
		t.Fatalf("found %v, %v", tasks, err)
	}
	return tasks
}
