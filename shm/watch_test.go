//go:build linux

package shm_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/shm"
)

// Of all processes that wait for long one looks for the dead every 10 ms, and the last of
// them looks eight times less often. When the first is gone the next one leads.
func TestB8_OneWaiterLeads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "region")
	mustTry(t, stint.New(1, stint.Config{Slots: open(t, path, one).Slots(0)}))
	const period = 10 * time.Millisecond
	waiting := make([]*shm.Region, 10)
	answers := make([]<-chan error, len(waiting))
	for i := range waiting {
		waiting[i] = open(t, path, one)
		answers[i] = waits(t, waiting[i]).answer
	}
	for first := range 3 {
		until(t, "others than the first two have all doorbells, or their intervals differ", func() bool {
			for i, r := range waiting[first:] {
				doorbells, pace := r.Watch()
				if want := []int{64, 64, 1}[min(i, 2)]; doorbells != want || pace != period*time.Duration(min(1+i, 8)) {
					return false
				}
			}
			return true
		})
		if err := waiting[first].Close(); err != nil {
			t.Error(err)
		}
		if err := <-answers[first]; !errors.Is(err, shm.ErrClosed) {
			t.Errorf("the wait ended with %v, want %v", err, shm.ErrClosed)
		}
	}
}

// Whether the leader is stopped or has died, the other waiters get the slot of the holder
// when that is killed.
func TestB8_LeaderIsGone(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, leader *process){
		"stopped": func(t *testing.T, leader *process) { t.Helper(); leader.signal(t, syscall.SIGSTOP) },
		"dead":    func(_ *testing.T, leader *process) { leader.kill() },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "region")
			leader := start(t, "wait for it", path)
			if !leader.await(1) {
				t.Fatal("the process has ended")
			}
			holder := holdOne(t, path)
			leader.send(t, "wait")
			r := open(t, path, one)
			until(t, "the leader does not wait", func() bool { return r.Slots(0).Usage().Waiting == 1 })
			answer := waits(t, r).answer
			until(t, "this one leads", func() bool { _, pace := r.Watch(); return pace == 20*time.Millisecond })
			end(t, leader)
			holder.kill()
			if err := <-answer; err != nil {
				t.Errorf("the slot of a dead process is not recovered: %v", err)
			}
		})
	}
}
