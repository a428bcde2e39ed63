package queue_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// hangingStore answers no heartbeat that hangs selects, as over a connection that is dead.
type hangingStore struct {
	memstore.Store
	hangs func(n int, heartbeats []queue.Heartbeat) bool
	n     atomic.Int32
	bare  error // what such a heartbeat returns when its context ends; nil: the cause of that
}

func (h *hangingStore) Heartbeat(
	ctx context.Context, now time.Time, w queue.Worker, heartbeats []queue.Heartbeat,
) ([]queue.Answer, error) {
	if h.hangs(int(h.n.Add(1)), heartbeats) {
		select {
		case <-ctx.Done():
			return nil, cmp.Or(h.bare, context.Cause(ctx))
		case <-time.After(40 * time.Second):
		}
	}
	return h.Store.Heartbeat(ctx, now, w, heartbeats)
}

// A heartbeat that hangs, and one whose checkpoint hangs, are given up before they cost the leases.
func TestC6_HeartbeatsThatHang(t *testing.T) {
	withCheckpoint := func(_ int, heartbeats []queue.Heartbeat) bool {
		return len(heartbeats) > 0 && heartbeats[0].Checkpoint != nil
	}
	for name, h := range map[string]*hangingStore{
		"one":                {hangs: func(n int, _ []queue.Heartbeat) bool { return n == 20 }},
		"two in a row":       {hangs: func(n int, _ []queue.Heartbeat) bool { return n == 20 || n == 21 }},
		"with checkpoints":   {hangs: withCheckpoint},
		"by a bare time-out": {hangs: withCheckpoint, bare: context.DeadlineExceeded},
		"as a store says":    {hangs: withCheckpoint, bare: queue.ErrUnavailable},
	} {
		for _, cfg := range []queue.Config{{}, {Lease: 3 * time.Second}, {Poll: time.Hour}} {
			t.Run(fmt.Sprintf("%s, lease %v, poll %v", name, cfg.Lease, cfg.Poll), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, 2, cfg)
					s := &hangingStore{Store: memstore.New(memstore.Config{}), hangs: h.hangs, bare: h.bare}
					r.Queue = queue.New(s, cfg)
					r.Handle("k", func(ctx context.Context, a *queue.Attempt) error {
						a.Save([]byte("half"))
						select {
						case <-time.After(5 * time.Minute):
							return nil
						case <-ctx.Done():
							return context.Cause(ctx)
						}
					})
					id := r.submit("k", queue.Options{})
					r.start()
					time.Sleep(6 * time.Minute)
					r.end()
					if task := r.is(id, queue.Succeeded); len(task.Steps) != 3 {
						t.Errorf("the task has the steps %+v", task.Steps)
					}
				})
			})
		}
	}
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

// Sync of a goroutine that goes on after its handler ends when the outcome has been settled.
func TestC6_SyncAfterTheHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := queue.Config{Poll: time.Hour, Lease: 10 * time.Hour}
		r := newRig(t, 2, cfg)
		f := &fullStore{Store: memstore.New(memstore.Config{})}
		f.full.Store(true)
		r.Queue = queue.New(f, cfg)
		in, late := make(chan error, 1), make(chan error, 1)
		r.Handle("k", func(ctx context.Context, a *queue.Attempt) error {
			ctx = context.WithoutCancel(ctx)
			a.Save([]byte("in the outcome"))
			go func() { in <- a.Sync(ctx) }()
			time.Sleep(time.Second)
			go func() {
				time.Sleep(time.Second)
				a.Save([]byte("after it"))
				late <- a.Sync(ctx)
			}()
			return queue.Snooze(time.Minute)
		})
		id := r.submit("k", queue.Options{})
		r.start()
		if err := <-in; err != nil {
			t.Errorf("Sync of a checkpoint of the outcome returns %v", err)
		}
		if err := <-late; !errors.Is(err, queue.ErrStale) {
			t.Errorf("Sync of a checkpoint after the outcome returns %v, want ErrStale", err)
		}
		if task := r.is(id, queue.Scheduled); string(task.Checkpoint) != "in the outcome" {
			t.Errorf("the checkpoint is %q", task.Checkpoint)
		}
		r.end()
	})
}
