package sched //nolint:testpackage // only the lock lets a test act between two pieces of a scan

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"

	"github.com/stintgo/stint/internal/backlog"
)

// pausing is the lock of an engine that calls pause after each unlock.
type pausing struct {
	engineLock

	pause func()
}

func (p pausing) Unlock() {
	p.engineLock.Unlock()
	p.pause()
}

// Entries may leave, and be reused, between two pieces of a scan, which then checks
// whether they are still there. The race detector reports a change of them without the
// lock.
func TestB6_EntriesLeaveDuringAScan(t *testing.T) {
	take := func(ctx context.Context, e *Engine, a Ask) error {
		p, err := e.Take(ctx, a)
		if err == nil {
			p.Release()
		}
		return err
	}
	submit := func(ctx context.Context, e *Engine, a Ask) error {
		job := new(nothing)
		job.Init(ctx, e)
		job.Go(job, a)
		<-job.Done()
		return job.Err()
	}
	for name, c := range map[string]struct {
		cfg   Config
		enter func(ctx context.Context, e *Engine, a Ask) error
		log   func(e *Engine) *backlog.Backlog[*entry]
	}{
		"goroutines": {Config{Limit: 2}, take, func(e *Engine) *backlog.Backlog[*entry] { return e.queue.log() }},
		"submitters": {Config{Limit: 2, Queue: 1}, submit, func(e *Engine) *backlog.Backlog[*entry] { return e.blocked.log }},
	} {
		t.Run(name, func(t *testing.T) {
			e := New(c.cfg)
			p, err := e.Take(t.Context(), Ask{Weight: 2})
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			enter := func(weight int32, want error) {
				for range backlog.PieceMax {
					all.Go(func() {
						if err := c.enter(context.Background(), e, Ask{Key: "k", Weight: weight, Tier: 3}); !errors.Is(err, want) {
							t.Errorf("weight %d: %v, want %v", weight, err, want)
						}
					})
				}
			}
			waiting := func(n int) {
				for st := e.Stats(func() {}); st.Queued+st.Blocked < n; st = e.Stats(func() {}) {
					runtime.Gosched()
				}
			}
			enter(2, ErrTooHeavy)
			waiting(backlog.PieceMax)
			enter(1, nil)
			waiting(2 * backlog.PieceMax)

			pauses := 0
			backlog.Scan(c.log(e), pausing{engineLock{e}, func() {
				if pauses++; pauses == 2 { // it has looked at some
					e.Limits().Resize(1)
					for range 100_000 { // they go; to wait for that would hide the race
						runtime.Gosched()
					}
				}
			}}, func(x *node) int64 { return x.Value.since })
			p.Release()
			all.Wait()
		})
	}
}
