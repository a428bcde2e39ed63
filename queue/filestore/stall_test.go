package filestore_test

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// TestC6_CallsDoNotWaitForRoom: on a full disk calls are answered, with what is wrong.
// Changes that had been decided by then are written when there is room. Later calls are
// refused, except outcomes. Reads, and the leases of running tasks, continue.
func TestC6_CallsDoNotWaitForRoom(t *testing.T) {
	for _, reason := range []syscall.Errno{syscall.ENOSPC, syscall.EMFILE} {
		disk := newFaulty(vfs.NewMem(), "", reason)
		c := newTasks(t, openIn(t, disk, "store", filestore.Config{}))
		ctx := t.Context()
		if err := errors.Join(c.submit(1), c.submit(1), c.submit(1)); err != nil {
			t.Fatal(err)
		}
		claimed, err := c.store.Claim(ctx, c.now, queue.Claim{Worker: "w", Kinds: []string{"k"}, Max: 2, Lease: time.Minute})
		if err != nil || len(claimed.Tasks) != 2 {
			t.Fatal(claimed, err)
		}
		succeeds, runs := claimed.Tasks[0], claimed.Tasks[1]
		disk.op = filestore.OpWrite
		disk.broken.Store(true)
		refused := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, queue.ErrUnavailable) || !errors.Is(err, reason) {
				t.Errorf("%v: %s is answered %v", reason, what, err)
				return
			}
			for _, word := range []string{"store", "make some", "ulimit -n"} {
				if strings.Contains(err.Error(), word) == (word == "make some" && reason == syscall.EMFILE ||
					word == "ulimit -n" && reason == syscall.ENOSPC) {
					t.Errorf("%v: %s is answered %q; is %q in it?", reason, what, err, word)
				}
			}
		}
		refused("the first order", c.store.PauseQueue(ctx, c.now, "first", &queue.Pause{}))
		refused("the second order", c.store.PauseQueue(ctx, c.now, "second", &queue.Pause{}))
		n, err := c.store.Command(ctx, c.now, queue.Command{Do: queue.OrderCancel, All: true})
		refused("a command", err)
		if n != 0 {
			t.Errorf("%v: the command has changed %d tasks", reason, n)
		}
		_, err = c.store.Claim(ctx, c.now, queue.Claim{Worker: "w", Kinds: []string{"k"}, Max: 1, Lease: time.Minute})
		refused("a claim", err)
		_, err = c.store.Maintain(ctx, c.now.Add(time.Hour), 0)
		refused("tending", err)
		outcome := queue.Outcome{ID: succeeds.ID, Token: succeeds.Lease.Token, Kind: queue.OutcomeSuccess}
		_, err = c.store.Settle(ctx, c.now, []queue.Outcome{outcome})
		refused("an outcome", err)
		heartbeat := queue.Heartbeat{ID: runs.ID, Token: runs.Lease.Token, Lease: 2 * time.Hour}
		answers, err := c.store.Heartbeat(ctx, c.now, queue.Worker{Name: "w"}, []queue.Heartbeat{heartbeat})
		if err != nil || answers[0].Stop != 0 {
			t.Errorf("%v: a heartbeat is answered %v, %v", reason, answers, err)
		}
		c.has(3)
		disk.broken.Store(false)
		settled(t, c.store, c.now, outcome)
		if _, err = c.store.Maintain(ctx, c.now.Add(time.Hour), 0); err != nil {
			t.Error(err)
		}
		found, err := all(ctx, c.store)
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range found {
			want := map[queue.ID]queue.State{succeeds.ID: queue.Succeeded, runs.ID: queue.Running}[task.ID]
			if want == 0 {
				want = queue.Waiting
			}
			if task.State != want {
				t.Errorf("%v: with room again, a task is %v, want %v", reason, task.State, want)
			}
		}
		set, err := c.store.Settings(ctx)
		if err != nil || set["first"].Paused == nil || set["second"].Paused != nil {
			t.Errorf("%v: with room again, the settings are %v, %v", reason, set, err)
		}
	}
}

// settled repeats an outcome until the store takes it.
func settled(t *testing.T, s *filestore.Store, now time.Time, o queue.Outcome) {
	t.Helper()
	for {
		answers, err := s.Settle(context.WithoutCancel(t.Context()), now, []queue.Outcome{o})
		if err == nil {
			if answers[0] != nil {
				t.Errorf("the outcome is answered %v", answers[0])
			}
			return
		}
		if !errors.Is(err, queue.ErrUnavailable) {
			t.Fatal(err)
		}
	}
}
