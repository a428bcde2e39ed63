package queue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

// fullStore is a store that can write no checkpoints while it is full.
type fullStore struct {
	queue.Store
	full atomic.Bool
}

func (f *fullStore) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	for _, b := range heartbeats {
		if b.Checkpoint != nil && f.full.Load() {
			return nil, queue.ErrUnavailable
		}
	}
	return f.Store.Heartbeat(ctx, now, w, heartbeats)
}

// A checkpoint that cannot be written costs no lease, and is written when there is
// room.
func TestC6_CheckpointOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, queue.Config{})
		f := &fullStore{Store: memstore.New(memstore.Config{})}
		r.Queue = queue.New(f, queue.Config{})
		end := make(chan struct{})
		r.Handle("k", func(ctx context.Context, a *queue.Attempt) error {
			a.Save([]byte("half"))
			select {
			case <-end:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		f.full.Store(true)
		id := r.submit("k", queue.Options{})
		r.start()
		time.Sleep(5 * time.Minute)
		if task := r.is(id, queue.Running); len(task.Steps) != 2 || task.Checkpoint != nil {
			t.Errorf("on a full disk, the task has the steps %+v and the checkpoint %q", task.Steps, task.Checkpoint)
		}
		f.full.Store(false)
		time.Sleep(2 * time.Second)
		if task := r.is(id, queue.Running); string(task.Checkpoint) != "half" {
			t.Errorf("with room again, the checkpoint is %q", task.Checkpoint)
		}
		close(end)
		r.end()
		r.is(id, queue.Succeeded)
	})
}
