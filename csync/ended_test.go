package csync_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stintgo/stint/csync"
)

var errEnded = errors.New("ended")

// A wait that ends after its context has ended does not bring what was waited for, even if
// the goroutine that waits has not run in between.
func TestD1_WhatEndsFirstWins(t *testing.T) {
	type trial struct {
		name  string
		wait  func(context.Context) error // for what another goroutine has
		give  func()                      // ends that
		after func() bool                 // whether nothing was taken
	}
	ctx := context.Background()
	trials := func() []trial {
		var mu csync.Mutex
		_ = mu.Lock(ctx)
		sem := csync.NewSemaphore(3)
		_ = sem.Acquire(ctx, 3)
		var write, read csync.RWMutex
		_, _ = write.RLock(ctx), read.Lock(ctx)
		empty, full := csync.NewChan[int](1), csync.NewChan[int](1)
		_ = full.Send(ctx, 1)
		return []trial{
			{"Mutex", mu.Lock, mu.Unlock, mu.TryLock},
			{
				"Semaphore", func(ctx context.Context) error { return sem.Acquire(ctx, 2) },
				func() { sem.Release(3) }, func() bool { return sem.TryAcquire(3) },
			},
			{"RWMutex for writing", write.Lock, write.RUnlock, write.TryLock},
			{"RWMutex for reading", read.RLock, read.Unlock, read.TryLock},
			{
				"Receive", func(ctx context.Context) error { _, err := empty.Receive(ctx); return err },
				func() { _, _ = empty.TrySend(1) }, func() bool { return empty.Len() == 1 },
			},
			{
				"Send", func(ctx context.Context) error { return full.Send(ctx, 2) },
				func() { _, _, _ = full.TryReceive() }, func() bool { return full.Len() == 0 },
			},
		}
	}
	for i := range trials() {
		for range 50 { // what a select chooses is random
			synctest.Test(t, func(t *testing.T) {
				c := trials()[i]
				ctx, cancel := context.WithCancelCause(ctx)
				result := make(chan error, 1)
				go func() { result <- c.wait(ctx) }()
				synctest.Wait()
				cancel(errEnded)
				c.give()
				if err := <-result; err != errEnded { //nolint:errorlint // the very error
					t.Errorf("%s: error %v, want the cause of the context", c.name, err)
				}
				if !c.after() {
					t.Errorf("%s: something was taken", c.name)
				}
			})
		}
	}
}

// A barrier whose last party arrives after the context of another has ended is broken.
func TestD4_BarrierWhatEndsFirstWins(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			b := csync.NewBarrier(2, func() { t.Error("the action is called") })
			ctx, cancel := context.WithCancelCause(t.Context())
			result := make(chan error, 1)
			go func() {
				_, err := b.Wait(ctx)
				result <- err
			}()
			synctest.Wait()
			cancel(errEnded)
			if _, err := b.Wait(t.Context()); !errors.Is(err, csync.ErrBroken) {
				t.Errorf("the last party: error %v, want ErrBroken", err)
			}
			if err := <-result; err != errEnded { //nolint:errorlint // the very error
				t.Errorf("the party whose context has ended: error %v", err)
			}
		})
	}
}
