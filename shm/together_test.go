//go:build linux

package shm_test

import (
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// waitFirst starts a process that holds the only slot of a region and n processes that
// wait for it, and then makes this process wait behind them in the table.
func waitFirst(t *testing.T, n int) (holder *process, waiters []*process, r *shm.Region, answer <-chan error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "region")
	for range n {
		p := start(t, "wait for it", path)
		if !p.await(1) {
			t.Fatal("the process has ended")
		}
		waiters = append(waiters, p)
	}
	holder = holdOne(t, path)
	r = open(t, path, one)
	for i, p := range waiters {
		p.send(t, "wait")
		until(t, "a process does not wait", func() bool { return r.Slots(0).Usage().Waiting == i+1 })
	}
	answer = waits(t, r).answer
	return holder, waiters, r, answer
}

// The slot of a killed process is recovered by doorbells alone, without a sweep, also if
// all processes that had doorbells of it are killed together with it.
func TestB8_ProcessesDieTogether(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			holder, waiters, r, answer := waitFirst(t, n)
			r.NeverSweep()
			killed := shm.Now()
			for _, p := range append(waiters, holder) {
				if err := p.cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			if err := <-answer; err != nil {
				t.Fatalf("the slot of a dead process is not recovered: %v", err)
			}
			t.Logf("it took %v", time.Duration(shm.Now()-killed))
		})
	}
}

// The leader, first in the queue, is stopped. When the holder is killed the slot goes to
// the process behind it by doorbells alone, and when the leader continues it waits as
// before.
func TestB8_LeaderIsStopped(t *testing.T) {
	holder, waiters, r, answer := waitFirst(t, 1)
	r.NeverSweep()
	until(t, "there are no doorbells", func() bool { doorbells, _ := r.Watch(); return doorbells > 1 })
	waiters[0].signal(t, syscall.SIGSTOP)
	killed := shm.Now()
	holder.kill()
	if err := <-answer; err != nil {
		t.Fatalf("the slot of a dead process is not recovered: %v", err)
	}
	t.Logf("it took %v", time.Duration(shm.Now()-killed))
	if u := r.Slots(0).Usage(); u.Running != 1 || u.Waiting != 1 {
		t.Errorf("usage is %+v, want that this process holds the slot and the other waits", u)
	}
	waiters[0].signal(t, syscall.SIGCONT)
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if !waiters[0].await(1) {
		t.Error("the process has ended")
	}
}

// A process that stops waiting rings the waiting process behind it, which depends on its
// doorbells, or is one of the first two now.
func TestB8_LeadIsHandedOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	mustTry(t, stint.New(1, stint.Config{Slots: open(t, path, one).Slots(0)}))
	var waiting []*shm.Region
	for range 3 {
		r := open(t, path, one)
		waits(t, r)
		waiting = append(waiting, r)
	}
	last := waiting[2]
	doorbells := func(want int) func() bool {
		return func() bool { n, _ := last.Watch(); return n == want }
	}
	until(t, "the last process has no doorbell of the one before it", doorbells(1))
	rung := last.Undisturbed(func() {
		if err := waiting[1].Close(); err != nil {
			t.Error(err)
		}
	})
	if rung == 0 {
		t.Error("the last process was not rung")
	}
	until(t, "the second process has not all doorbells", doorbells(shm.ProcessesMax))
}
