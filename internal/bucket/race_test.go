package bucket_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint/internal/bucket"
)

// TestB10_ManyTakersOneClock lets goroutines take tokens at times that one
// counter gives them, so that they overlap in every way, while the rate is
// changed all the time. Whatever they do, no more than the highest rate goes
// through, and what went through is what the bucket has counted.
func TestB10_ManyTakersOneClock(t *testing.T) {
	const rate, capacity = 1e9, 100 // a token a nanosecond
	b := newBucket(rate, capacity)
	var clock, taken atomic.Int64
	var lock sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 20_000 {
				if i%100 == 0 {
					lock.Lock()
					b.Freeze()
					b.Set(clock.Add(3), rate/float64(1+i%3), capacity)
					lock.Unlock()
				}
				if b.Take(clock.Add(3), int64(1+i%7)) == bucket.Taken {
					taken.Add(int64(1 + i%7))
				}
			}
		})
	}
	wg.Wait()
	now := clock.Load()
	if got := taken.Load() + b.Tokens(now); got > capacity+now {
		t.Errorf("%d tokens in %d ns", got, now)
	}
	if taken.Load() < now/4 {
		t.Errorf("only %d tokens in %d ns", taken.Load(), now)
	}
}

// TestB10_TakersAndWaiters is the same for goroutines of which each waits now
// and then. Every token that is taken must be counted once: a count that is
// lost where the two meet lets tokens through that were not earned. An amount
// is larger on average than what the clock earns by taking and waiting, 6
// tokens: however often the takers meet in the queue, the bucket does not
// overflow.
func TestB10_TakersAndWaiters(t *testing.T) {
	const rate, capacity = 1e9, 100 // a token a nanosecond
	b := newBucket(rate, capacity)
	var clock, taken atomic.Int64
	var lock sync.Mutex
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			var e bucket.Entry
			for i := range 20_000 {
				n := int64(4 + i%7)
				if b.Take(clock.Add(3), n) == bucket.Taken {
					taken.Add(n)
					continue
				}
				lock.Lock()
				b.Push(clock.Add(3), &e, i%bucket.Tiers, n)
				for b.Granted() == nil {
					b.Advance(clock.Add(3))
				}
				lock.Unlock()
				taken.Add(n)
			}
		})
	}
	wg.Wait()
	now := clock.Load()
	got := taken.Load() + b.Tokens(now)
	if got > capacity+now {
		t.Errorf("%d tokens in %d ns", got, now)
	}
	if got < now {
		t.Errorf("only %d tokens in %d ns", got, now)
	}
}
