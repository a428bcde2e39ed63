package machine_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// While the rows are stalled, repeated heartbeats with a checkpoint are refused, and no
// checkpoint is kept in memory.
func TestC6_CheckpointsDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &steppedRows{rows: newRows()}
		var stalled chan struct{}
		m, err := machine.Open(r, machine.Config{
			Room:    func() error { return nil },
			Stalled: func() <-chan struct{} { return stalled },
		})
		if err != nil {
			t.Fatal(err)
		}
		var ids queue.IDs
		submit(t, m, newTask(&ids, queue.Spec{}))
		task := claim(t, m, 1)[0]
		heartbeat := func(checkpoint []byte) error {
			b := queue.Heartbeat{ID: task.ID, Token: task.Lease.Token, Lease: time.Minute, Checkpoint: checkpoint}
			_, err := m.Heartbeat(t.Context(), start, queue.Worker{Name: "w"}, []queue.Heartbeat{b})
			return err
		}
		r.gate, stalled, r.largest = make(chan struct{}), make(chan struct{}), 0
		close(stalled)
		for i := range 100 {
			if err := heartbeat([]byte{byte(i)}); !errors.Is(err, queue.ErrUnavailable) {
				t.Fatalf("a heartbeat with a checkpoint is answered %v", err)
			}
			if err := heartbeat(nil); err != nil {
				t.Fatalf("a heartbeat without a checkpoint is answered %v", err)
			}
		}
		close(r.gate)
		stalled = nil
		if err := heartbeat([]byte("last")); err != nil {
			t.Error(err)
		}
		if r.largest > 1 {
			t.Errorf("%d checkpoints were kept", r.largest)
		}
	})
}

// While the rows are stalled, a submit says whether its tasks are refused, or were accepted by the
// first of several equal calls.
func TestC6_SubmitSaysWhetherItIsDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &steppedRows{rows: newRows()}
		var full atomic.Bool
		stalled := make(chan struct{})
		m, err := machine.Open(r, machine.Config{
			Room: func() error {
				if full.Load() {
					return errors.New("the disk is full")
				}
				return nil
			},
			Stalled: func() <-chan struct{} { return stalled },
		})
		if err != nil {
			t.Fatal(err)
		}
		var ids queue.IDs
		first, second := newTask(&ids, queue.Spec{}), newTask(&ids, queue.Spec{})
		says := func(task queue.NewTask, want string) {
			t.Helper()
			_, err := m.Submit(t.Context(), start, []queue.NewTask{task})
			if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("the answer is %v; want %q", err, want)
			}
		}
		r.gate = make(chan struct{})
		time.AfterFunc(time.Second, func() {
			full.Store(true)
			close(stalled)
		})
		says(first, "the change is decided")
		says(first, "the change is decided")
		says(second, "the call was refused: the disk is full")
		full.Store(false)
		says(first, "the change is decided")
		says(second, "the call was refused")
		close(r.gate)
		stalled = make(chan struct{})
		if _, err := m.Submit(t.Context(), start, []queue.NewTask{first, second}); err != nil {
			t.Error(err)
		}
	})
}
