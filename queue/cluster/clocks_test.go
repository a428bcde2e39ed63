package cluster_test

import (
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

func found(t *testing.T, at skewed, id queue.ID) []queue.Task {
	t.Helper()
	tasks, err := at.Find(t.Context(), queue.Filter{IDs: []queue.ID{id}}, queue.Page{})
	if err != nil || len(tasks) != 1 {
		t.Fatalf("found %v, %v", tasks, err)
	}
	return tasks
}
