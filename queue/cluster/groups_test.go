package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/cluster"
	"github.com/stintgo/stint/queue/storetest"
)

// groupsOn returns n groups on stores of a kind. Group 0 is the default group, and group i has
// the queue "queue i".
func groupsOn(t *testing.T, k kind, n int) []cluster.Group {
	t.Helper()
	groups := make([]cluster.Group, n)
	for i := range groups {
		groups[i] = cluster.Group{Name: fmt.Sprintf("group %d", i), Open: k.opener(t, storetest.Config{})}
		if i > 0 {
			groups[i].Queues = []string{queueOf(i)}
		}
	}
	return groups
}

func queueOf(group int) string { return fmt.Sprintf("queue %d", group) }

// openGroups opens groups as one of several processes, and closes them when the test ends.
func openGroups(t *testing.T, name string, groups []cluster.Group) *cluster.Groups {
	t.Helper()
	return openGroupsEvery(t, name, groups, 100*time.Millisecond)
}

func openGroupsEvery(t *testing.T, name string, groups []cluster.Group, every time.Duration) *cluster.Groups {
	t.Helper()
	return openGroupsLogged(t, name, groups, every, nil)
}

// openGroupsLogged is openGroupsEvery with a log.
func openGroupsLogged(
	t *testing.T, name string, groups []cluster.Group, every time.Duration, log *slog.Logger,
) *cluster.Groups {
	t.Helper()
	cfg := cluster.Config{Name: name, Patience: time.Minute, Logger: log}
	g, err := cluster.OpenGroupsEvery(t.Context(), groups, cfg, every)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closesGroups(t, g) })
	return g
}

func closesGroups(t *testing.T, g *cluster.Groups) {
	t.Helper()
	if err := g.Close(); err != nil && !errors.Is(err, queue.ErrLed) {
		t.Error(err)
	}
}

// await waits until a condition holds, for two minutes at most. saw is what it has seen.
func await(t *testing.T, what string, holds func() (saw string, ok bool)) {
	t.Helper()
	const within, every = 2 * time.Minute, 20 * time.Millisecond
	ctx, stop := context.WithTimeout(t.Context(), within)
	defer stop()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		saw, ok := holds()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s; at the end: %s", what, within, saw)
		}
	}
}

// awaitLeads waits until the processes lead the wanted numbers of groups, in any order.
func awaitLeads(t *testing.T, groups []cluster.Group, want []int, processes ...*cluster.Groups) {
	t.Helper()
	await(t, fmt.Sprintf("processes lead %v groups", want), func() (string, bool) {
		leads := make([]int, len(processes))
		for i, p := range processes {
			for _, g := range groups {
				if _, own := p.Node(g.Name).Leader(); own {
					leads[i]++
				}
			}
		}
		slices.Sort(leads)
		return fmt.Sprint(leads), slices.Equal(leads, want)
	})
}

// submitting submits tasks to all groups at a process until stop is called, which returns how
// many were accepted. Each call must succeed.
func submitting(t *testing.T, p *cluster.Groups, ids *queue.IDs, groups int) (stop func() int) {
	t.Helper()
	stopped := make(chan struct{})
	var callers sync.WaitGroup
	var accepted atomic.Int64
	for i := range groups {
		callers.Go(func() {
			for {
				now := time.Now()
				task := queue.NewTask{ID: ids.New(now), Spec: queue.Spec{Kind: "work"}}
				if i > 0 {
					task.Queue = queueOf(i)
				}
				if _, err := p.Submit(t.Context(), now, []queue.NewTask{task}); err != nil {
					t.Errorf("submit to group %d: %v", i, err)
					return
				}
				accepted.Add(1)
				select {
				case <-time.After(5 * time.Millisecond):
				case <-stopped:
					return
				}
			}
		})
	}
	return sync.OnceValue(func() int {
		close(stopped)
		callers.Wait()
		return int(accepted.Load())
	})
}

// TestC11_GroupsSpreadPastADecliningProcess: a process that leads no group, and takes none over, does
// not keep the first one from handing groups over to one that leads some.
func TestC11_GroupsSpreadPastADecliningProcess(t *testing.T) {
	const count = 4
	groups := groupsOn(t, kinds[0], count)
	first := openGroups(t, "first", groups)
	awaitLeads(t, groups, []int{count}, first)
	declining, err := cluster.OpenGroupsDeclining(t.Context(), groups, cluster.Config{Name: "declining"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closesGroups(t, declining) })
	openGroups(t, "second", groups)
	awaitLeads(t, groups, []int{2}, first)
}

// TestC11_GroupsSpread: the first process leads all groups, and hands them over to those that
// come, one by one, while calls go on and none of them fails. When a process ends, the others
// lead its groups, in equal numbers.
func TestC11_GroupsSpread(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			const count = 6
			groups := groupsOn(t, k, count)
			var ids queue.IDs
			first := openGroups(t, "first", groups)
			awaitLeads(t, groups, []int{6}, first)
			second, third := openGroups(t, "second", groups), openGroups(t, "third", groups)
			stop := submitting(t, first, &ids, count)
			stopOther := submitting(t, third, &ids, count)
			awaitLeads(t, groups, []int{2, 2, 2}, first, second, third)
			closesGroups(t, second)
			awaitLeads(t, groups, []int{3, 3}, first, third)
			accepted := stop() + stopOther()
			stats, err := third.Stats(t.Context(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			found := 0
			for _, counts := range stats.Queues {
				for _, n := range counts.States {
					found += n
				}
			}
			if found != accepted || len(stats.Queues) != count {
				t.Errorf("%d tasks were accepted, and there are %d in %d queues", accepted, found, len(stats.Queues))
			}
			for i, g := range stats.Groups {
				if g.Name != groups[i].Name || g.Lead == nil || !slices.Equal(g.Queues, groups[i].Queues) {
					t.Errorf("group %d is %+v", i, g)
				}
			}
		})
	}
}

// TestC11_GroupsInvitations: a process takes a group over only from one that leads two more, and
// only one at a time: the counts that a leader knows may be out of date.
func TestC11_GroupsInvitations(t *testing.T) {
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	const every = 5 * time.Second
	got := cluster.Accepts(3, every,
		[]time.Time{now, now, now, now.Add(every - 1), now.Add(every), now.Add(2 * every)}, []int{3, 4, 5, 5, 5, 4})
	if want := []bool{false, false, true, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("accepted %v, want %v", got, want)
	}
}

// TestC11_GroupsOfOtherProcesses: a process with other groups than the one that leads can neither
// put tasks of a queue into another group nor open them while that queue has tasks.
func TestC11_GroupsOfOtherProcesses(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			const count = 2
			groups := groupsOn(t, k, count)
			p := openGroupsEvery(t, "first", groups, time.Hour) // the first one leads to the end
			other := slices.Clone(groups)
			other[1].Queues = []string{"another queue"}
			q := openGroupsEvery(t, "second", other, time.Hour)
			var ids queue.IDs
			task := queue.NewTask{
				ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "work", Options: queue.Options{Queue: queueOf(1)}},
			}
			if _, err := q.Submit(t.Context(), time.Now(), []queue.NewTask{task}); !errors.Is(err, queue.ErrInvalid) ||
				!strings.Contains(err.Error(), "the same groups") {
				t.Errorf("submit with other groups: %v", err)
			}
			if _, err := p.Submit(t.Context(), time.Now(), []queue.NewTask{task}); err != nil {
				t.Error(err)
			}
			_, err := cluster.OpenGroups(t.Context(), other, cluster.Config{Name: "third"})
			if !errors.Is(err, queue.ErrInvalid) || !strings.Contains(err.Error(), queueOf(1)) {
				t.Errorf("open with other groups: %v", err)
			}
		})
	}
}

// TestC11_StoresThatDiffer: two processes that name different stores for a group log that.
func TestC11_StoresThatDiffer(t *testing.T) {
	const count, says = 2, "has another store for a group"
	here := groupsOn(t, kinds[1], count)
	there := slices.Clone(here)
	here[1].Store, there[1].Store = "the right database", "the wrong database"
	first, awaitFirst := logged()
	openGroupsLogged(t, "first", here, time.Hour, first) // leads to the end
	second, awaitSecond := logged()
	openGroupsLogged(t, "second", there, time.Hour, second)
	awaitFirst(t, says)
	awaitSecond(t, says)
}

// TestC11_GroupsThatDiffer: the leader of a group refuses new tasks of a queue if another process
// has the queue in another group, because that process puts tasks of the queue into that group.
// Both log that they differ.
// Claims of tasks that the leader's group has already go on.
func TestC11_GroupsThatDiffer(t *testing.T) {
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			const count = 2
			groups := groupsOn(t, k, count)
			other := slices.Clone(groups)
			other[1].Queues = []string{"another queue"}
			p := openGroupsEvery(t, "first", other, time.Hour) // the first one leads to the end
			var ids queue.IDs
			submit := func(at *cluster.Groups, name string) error {
				task := queue.NewTask{ID: ids.New(time.Now()), Spec: queue.Spec{Kind: "work", Options: queue.Options{Queue: name}}}
				_, err := at.Submit(t.Context(), time.Now(), []queue.NewTask{task})
				return err
			}
			log, awaitLog := logged()
			q := openGroupsLogged(t, "second", groups, time.Hour, log)
			awaitLog(t, "this node has other groups than the one that leads")
			await(t, "tasks that the second process puts into another group are refused", func() (string, bool) {
				err := submit(p, queueOf(1))
				return fmt.Sprint(err), errors.Is(err, queue.ErrInvalid) &&
					strings.Contains(err.Error(), "node second") && strings.Contains(err.Error(), "the same groups")
			})
			err := p.Reschedule(t.Context(), time.Now(), queue.Reschedule{Name: "s", To: &queue.ScheduleState{
				Schedule: queue.Schedule{
					Name: "s", Cron: "@daily", Task: queue.Spec{Kind: "work", Options: queue.Options{Queue: queueOf(1)}},
				},
				Version: ids.New(time.Now()), Next: time.Now(),
			}})
			if !errors.Is(err, queue.ErrInvalid) {
				t.Errorf("a schedule of such a queue: %v", err)
			}
			for _, at := range []*cluster.Groups{p, q} {
				if err := submit(at, "a queue of both"); err != nil {
					t.Errorf("a queue about which they agree: %v", err)
				}
			}
			claim := queue.Claim{Worker: "w", Queue: queueOf(1), Kinds: []string{"work"}, Max: 1, Lease: time.Minute}
			if _, err := p.Claim(t.Context(), time.Now(), claim); err != nil {
				t.Errorf("a claim, which adds no task: %v", err)
			}
			closesGroups(t, q)
			await(t, "tasks are accepted when the second process has gone", func() (string, bool) {
				err := submit(p, queueOf(1))
				return fmt.Sprint(err), err == nil
			})
		})
	}
}
