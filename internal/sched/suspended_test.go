package sched //nolint:testpackage // which functions wait to resume cannot be seen from outside

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// BenchmarkBesideResumes is a call that takes a slot and releases it, while n functions of a key
// wait for that key to resume their slots.
func BenchmarkBesideResumes(b *testing.B) {
	for _, slots := range []Slots{nil, new(freeSlots)} {
		for _, n := range []int{1, 100, 1000, 10_000} {
			b.Run(fmt.Sprintf("shared=%v/n=%d", slots != nil, n), func(b *testing.B) {
				e := New(Config{Limit: 2, PerKey: 1, Slots: slots})
				resume := resumeBehind(b, e, n)
				for b.Loop() {
					p, err := e.Take(b.Context(), Ask{Weight: 1, Tier: 3})
					if err != nil {
						b.Fatal(err)
					}
					p.Release()
				}
				resume()
			})
		}
	}
}

// BenchmarkResume is the time in which one of n functions of a key, which all wait to resume,
// resumes and ends.
func BenchmarkResume(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				resume := resumeBehind(b, New(Config{Limit: 2, PerKey: 1}), n)
				b.StartTimer()
				resume()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/resume")
		})
	}
}

// resumeBehind makes n functions of a key suspend their slots and wait to resume them behind a
// permit of the key. The result releases that permit, and returns when all functions have ended.
func resumeBehind(tb testing.TB, e *Engine, n int) (resume func()) {
	tb.Helper()
	ask := Ask{Key: "k", Weight: 1, Tier: 3}
	awaited := new(Call)
	awaited.InitByHand(e)
	var all sync.WaitGroup
	for range n {
		all.Add(1)
		job := &function{fn: func(ctx context.Context) {
			defer all.Done()
			awaited.Wait(ctx)
		}}
		job.Init(tb.Context(), e)
		job.Go(job, ask)
	}
	untilLocked(e, func() bool { return e.suspended.n == n })
	permit, err := e.Take(tb.Context(), ask)
	if err != nil {
		tb.Fatal(err)
	}
	awaited.Claim()
	awaited.Settle(nil)
	untilLocked(e, func() bool { return e.suspended.resumes.n == n })
	return func() {
		permit.Release()
		all.Wait()
	}
}

// untilLocked waits until a condition holds, which is checked with the lock held.
func untilLocked(e *Engine, holds func() bool) {
	for {
		e.lock()
		held := holds()
		e.unlock()
		if held {
			return
		}
		runtime.Gosched()
	}
}

// freeSlots are shared slots of which any number is free.
type freeSlots struct{ granted uint64 }

func (*freeSlots) Bind(func(), func(uint64, error)) {}
func (*freeSlots) Release(uint64)                   {}
func (*freeSlots) Want(int, int)                    {}

func (s *freeSlots) TryAcquire(int) (grant uint64, err error) {
	s.granted++
	return s.granted, nil
}
