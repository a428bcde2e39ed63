package queue_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/memstore"
)

var errShort = fmt.Errorf("%w; raise the limit", syscall.EMFILE)

// A shortage of the process costs no attempt of a task, slows the claims of its Run
// down, is logged once a minute, and is over with the first attempt that starts.
func TestC2_ShortageIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r := newRig(t, 4, queue.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var short atomic.Bool
		var tries atomic.Int64
		short.Store(true)
		r.Handle("k", func(context.Context, *queue.Attempt) error {
			tries.Add(1)
			if short.Load() {
				return queue.Shortage(errShort)
			}
			return nil
		})
		var ids []queue.ID
		for range 20 {
			ids = append(ids, r.submit("k", queue.Options{MaxAttempts: 1, MaxCrashes: 1}))
		}
		r.start()
		time.Sleep(10 * time.Minute)
		// 4 slots at first, then with pauses from 100 ms to 10 s.
		if n := tries.Load(); n < 50 || n > 4+7+60 {
			t.Errorf("%d attempts in ten minutes of shortage, want about one in ten seconds", n)
		}
		if n := strings.Count(log.String(), errShort.Error()); n < 1 || n > 10 {
			t.Errorf("%d lines in ten minutes, want one in each:\n%s", n, &log)
		}
		task := r.is(ids[0], queue.Waiting)
		last := task.Steps[len(task.Steps)-1]
		if task.Failures != 0 || last.On != queue.OnRelease || last.Detail != errShort.Error() {
			t.Errorf("%d failures, and the last step is %+v", task.Failures, last)
		}
		short.Store(false)
		time.Sleep(11 * time.Second)
		for _, id := range ids {
			r.is(id, queue.Succeeded)
		}
		r.end()
	})
}

// Handlers that call Started and return a shortage nevertheless, as the function of an isolated
// handler does whose process has started, end the slowdown, and the next one continues with its pause.
func TestC2_ShortageAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 4, queue.Config{})
		var tries atomic.Int64
		r.Handle("k", func(_ context.Context, a *queue.Attempt) error {
			tries.Add(1)
			a.Started()
			return queue.Shortage(errShort)
		})
		for range 20 {
			r.submit("k", queue.Options{})
		}
		r.start()
		time.Sleep(10 * time.Minute)
		if n := tries.Load(); n < 50 || n > 4*(1+7+60) {
			t.Errorf("%d attempts in ten minutes of shortage, want one for each slot in ten seconds at most", n)
		}
		r.end()
	})
}

// An attempt that has started ends the slowdown though it goes on for long, and one
// that began before the shortage does not.
func TestC2_StartEndsTheSlowdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 10, queue.Config{})
		var short atomic.Bool
		old := make(chan struct{})
		r.Handle("old", func(context.Context, *queue.Attempt) error { <-old; return nil })
		var running atomic.Int64
		end := make(chan struct{})
		r.Handle("k", func(_ context.Context, a *queue.Attempt) error {
			if short.Load() {
				return queue.Shortage(errShort)
			}
			a.Started()
			running.Add(1)
			<-end
			return nil
		})
		r.submit("old", queue.Options{})
		r.start()
		short.Store(true)
		for range 9 {
			r.submit("k", queue.Options{})
		}
		time.Sleep(2 * time.Minute)
		short.Store(false)
		close(old)
		synctest.Wait()
		if n := running.Load(); n != 0 {
			t.Errorf("%d attempts started when an old one ended", n)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := running.Load(); n != 9 {
			t.Errorf("%d of 9 tasks run after the pause, though each start succeeds", n)
		}
		close(end)
		r.end()
	})
}

// While a worker is short of something, others work as before, and what is submitted
// to an idle one afterwards does not wait for the end of a pause.
func TestC2_ShortageOfOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		var short atomic.Bool
		short.Store(true)
		var done, back atomic.Int64
		worker := func(handle queue.Handler) (q *queue.Queue, end func()) {
			q = queue.New(store, queue.Config{})
			q.Handle("k", handle)
			ctx, stop := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- q.Run(ctx, stint.New(2, stint.Config{})) }()
			return q, func() {
				stop(errOver)
				if err := <-ended; !errors.Is(err, errOver) {
					t.Error(err)
				}
			}
		}
		q, endShort := worker(func(context.Context, *queue.Attempt) error {
			if short.Load() {
				back.Add(1)
				return queue.Shortage(errShort)
			}
			done.Add(1)
			return nil
		})
		_, endSound := worker(func(context.Context, *queue.Attempt) error {
			time.Sleep(10 * time.Millisecond)
			done.Add(1)
			return nil
		})
		submit := func(n int) {
			for range n {
				if _, err := queue.Kind[any]("k").Submit(t.Context(), q, nil, queue.Options{}); err != nil {
					t.Fatal(err)
				}
			}
		}
		submit(1000)
		time.Sleep(5*time.Second + 100*time.Millisecond) // 1000 tasks of 10 ms on two slots
		if n := done.Load(); n != 1000 || back.Load() > 12 {
			t.Errorf("%d of 1000 tasks are done, and %d were released", n, back.Load())
		}
		endSound()
		short.Store(false)
		time.Sleep(time.Minute) // the pause is over, and nothing is there to claim
		submit(1)
		synctest.Wait()
		if n := done.Load(); n != 1001 {
			t.Errorf("the last task is not done at once")
		}
		endShort()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
