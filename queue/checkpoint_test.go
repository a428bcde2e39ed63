package queue_test

import (
	"context"
	"errors"
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

// Sync does not wait for the next heartbeat, but it waits for room on a full disk.
func TestC6_SyncOfACheckpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 2, queue.Config{Poll: time.Hour, Lease: 10 * time.Hour})
		f := &fullStore{Store: memstore.New(memstore.Config{})}
		r.Queue = queue.New(f, queue.Config{Poll: time.Hour, Lease: 10 * time.Hour})
		more, end := make(chan struct{}), make(chan struct{})
		synced := make(chan error)
		r.Handle("k", func(ctx context.Context, a *queue.Attempt) error {
			for _, checkpoint := range []string{"one", "two"} {
				a.Save([]byte(checkpoint))
				synced <- a.Sync(ctx)
				<-more
			}
			synced <- a.Sync(ctx) // nothing to write
			<-end
			return nil
		})
		id := r.submit("k", queue.Options{})
		begin := time.Now()
		r.start()
		if err := <-synced; err != nil || time.Since(begin) > time.Minute {
			t.Errorf("Sync took %s, error %v", time.Since(begin), err)
		}
		if task := r.is(id, queue.Running); string(task.Checkpoint) != "one" {
			t.Errorf("after Sync, the checkpoint is %q", task.Checkpoint)
		}
		f.full.Store(true)
		more <- struct{}{}
		time.Sleep(3 * time.Hour)
		select {
		case err := <-synced:
			t.Errorf("Sync returned %v on a full disk", err)
		default:
		}
		f.full.Store(false)
		if err := <-synced; err != nil {
			t.Error(err)
		}
		more <- struct{}{}
		if err := <-synced; err != nil {
			t.Error(err)
		}
		if task := r.is(id, queue.Running); string(task.Checkpoint) != "two" {
			t.Errorf("after the second Sync, the checkpoint is %q", task.Checkpoint)
		}
		close(end)
		r.end()
	})
}

// Sync ends with its context, and is without effect in a test of a handler alone.
func TestC6_SyncEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{})
		f := &fullStore{Store: memstore.New(memstore.Config{})}
		r.Queue = queue.New(f, queue.Config{})
		f.full.Store(true)
		ended := make(chan error, 1)
		r.Handle("k", func(ctx context.Context, a *queue.Attempt) error {
			a.Save([]byte("one"))
			err := a.Sync(ctx)
			ended <- err
			f.full.Store(false)
			return err
		})
		id := r.submit("k", queue.Options{})
		r.start()
		time.Sleep(time.Second)
		if err := r.Pause(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, queue.ErrPaused) {
			t.Errorf("Sync returned %v; want the cause of its context", err)
		}
		r.end()
		alone := &queue.Attempt{}
		alone.Save([]byte("one"))
		if err := alone.Sync(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Sync also saves what a handler has left to save when its task is ordered to pause.
func TestC6_SyncAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, queue.Config{Lease: 3 * time.Second})
		synced := make(chan error, 1)
		r.Handle("k", func(ctx context.Context, a *queue.Attempt) error {
			<-ctx.Done()
			time.Sleep(10 * time.Second) // more than a lease
			a.Save([]byte("half"))
			synced <- a.Sync(context.WithoutCancel(ctx))
			return ctx.Err()
		})
		id := r.submit("k", queue.Options{})
		r.start()
		r.command(queue.OrderPause, id)
		time.Sleep(time.Minute)
		select {
		case err := <-synced:
			if err != nil {
				t.Error(err)
			}
		default:
			t.Fatal("Sync has not returned")
		}
		if task := r.is(id, queue.Paused); string(task.Checkpoint) != "half" {
			t.Errorf("the checkpoint is %q", task.Checkpoint)
		}
		r.end()
	})
}

// Sync returns an error if the store takes no checkpoint of the attempt any more.
func TestC6_SyncOfACheckpointThatIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		size int
		want error
	}{"too large": {1001, queue.ErrTooLarge}, "lost lease": {1, queue.ErrStale}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, 1, queue.Config{})
				begin := make(chan struct{})
				synced := make(chan error, 1)
				r.Handle("k", func(ctx context.Context, a *queue.Attempt) error {
					<-begin
					a.Save(make([]byte, c.size))
					synced <- a.Sync(context.WithoutCancel(ctx))
					return ctx.Err()
				})
				id := r.submit("k", queue.Options{MaxCrashes: 1})
				r.start()
				if name == "lost lease" {
					if _, err := r.store.Maintain(t.Context(), time.Now().Add(time.Hour), 0); err != nil {
						t.Fatal(err)
					}
				}
				close(begin)
				time.Sleep(time.Minute)
				select {
				case err := <-synced:
					if !errors.Is(err, c.want) {
						t.Errorf("Sync returned %v, want %v", err, c.want)
					}
				default:
					t.Fatal("Sync has not returned")
				}
				r.is(id, queue.Dead)
				r.end()
			})
		})
	}
}
