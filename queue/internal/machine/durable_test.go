package machine_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/machine"
)

// An end that is decided but not durable is found, except by a caller that asks for what is
// durable: neither a stalled disk nor the end of the process answers Wait.
func TestC1_WaitsForADurableEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRows()
		var stalled chan struct{}
		m, err := machine.Open(r, machine.Config{
			Room: func() error {
				if stalled == nil {
					return nil
				}
				return errors.New("the disk is full")
			},
			Stalled: func() <-chan struct{} { return stalled },
		})
		if err != nil {
			t.Fatal(err)
		}
		var ids queue.IDs
		task := newTask(&ids, queue.Spec{})
		submit(t, m, task)
		claimed, err := m.Claim(t.Context(), start, queue.Claim{
			Worker: "w", Kinds: []string{"kind"}, Max: 1, Lease: time.Minute,
		})
		if err != nil || len(claimed.Tasks) != 1 {
			t.Fatalf("%d tasks are claimed, and the error is %v", len(claimed.Tasks), err)
		}
		r.gate = make(chan struct{})
		q := queue.New(m, queue.Config{})
		waited := make(chan queue.Task, 1)
		go func() {
			ended, err := q.Wait(t.Context(), task.ID)
			if err != nil {
				t.Error(err)
			}
			waited <- ended
		}()
		go m.Settle(t.Context(), start, []queue.Outcome{{ //nolint:errcheck // it stalls
			ID: task.ID, Token: claimed.Tasks[0].Lease.Token, Kind: queue.OutcomeSuccess,
		}})
		synctest.Wait()
		f := queue.Filter{IDs: []queue.ID{task.ID}}
		if found, err := m.Find(t.Context(), f, queue.Page{}); err != nil || found[0].State != queue.Succeeded {
			t.Errorf("Find returns %v, %v; want the task succeeded", found, err)
		}
		stalled = make(chan struct{})
		close(stalled)
		if found, err := m.Find(t.Context(), f, queue.Page{Durable: true}); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("Find of what is durable returns %v, %v; want ErrUnavailable", found, err)
		}
		time.Sleep(time.Minute)
		select {
		case ended := <-waited:
			t.Errorf("Wait returns %v before its end is durable", ended.State)
		default:
		}
		stalled = nil
		close(r.gate)
		if ended := <-waited; ended.State != queue.Succeeded {
			t.Errorf("Wait returns %v", ended.State)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}
