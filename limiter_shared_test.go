package stint_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/buckettest"
)

func TestB13_FakeKeepsTheContract(t *testing.T) {
	buckettest.Run(t, func(_ *testing.T, rate float64, capacity int64, n int) (all []stint.Bucket) {
		pool := buckettest.NewPool(rate, capacity)
		for i := range n {
			all = append(all, pool.Join(strconv.Itoa(i)))
		}
		return all
	})
}

// sharedRate returns a pool that is empty, and limiters without a rate of their own
// that draw on it.
func sharedRate(rate float64, capacity int64) (pool *buckettest.Pool, a, b stint.Limiter) {
	pool = buckettest.NewPool(rate, capacity)
	a = stint.NewLimiter(0, stint.LimiterConfig{Bucket: pool.Join("a")})
	b = stint.NewLimiter(0, stint.LimiterConfig{Bucket: pool.Join("b")})
	a.Try(capacity)
	return pool, a, b
}

// flood keeps n callers of a limiter waiting until ctx ends, and counts tokens.
func flood(ctx context.Context, l stint.Limiter, p stint.Priority, callers int, n int64) *atomic.Int64 {
	got := new(atomic.Int64)
	for range callers {
		go func() {
			for l.At(p).Wait(ctx, n) == nil {
				got.Add(n)
			}
		}()
	}
	return got
}

func TestB13_OneRateForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := sharedRate(100, 10)
		ctx, cancel := context.WithCancel(t.Context())
		ofA, ofB := flood(ctx, a, stint.Normal, 3, 1), flood(ctx, b, stint.Normal, 3, 1)
		time.Sleep(100 * time.Second)
		cancel()
		synctest.Wait()
		if all := ofA.Load() + ofB.Load(); all < 9_999 || all > 10_000 {
			t.Errorf("%d tokens in 100 s at 100/s", all)
		}
		if ofA.Load() < 4900 || ofB.Load() < 4900 {
			t.Errorf("%d and %d tokens, want them to take turns", ofA.Load(), ofB.Load())
		}
	})
}

func TestB13_HigherTiersOfOthersFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := sharedRate(10, 10)
		var done log
		done.queue(t.Context(), "low", a.At(stint.Low), 1)
		done.queue(t.Context(), "normal", b.At(stint.Normal), 1)
		done.queue(t.Context(), "high", a.At(stint.High), 1)
		done.queue(t.Context(), "lowest", b.At(stint.Lowest), 1)
		if got := done.after(time.Second); got != "high normal low lowest" {
			t.Errorf("admitted %q", got)
		}
	})
}

func TestB13_TryOnlyWithoutWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := sharedRate(100, 10)
		if a.Try(1) || !a.Try(0) {
			t.Error("Try does not count")
		}
		var done log
		done.queue(t.Context(), "low", a.At(stint.Lowest), 10)
		time.Sleep(50 * time.Millisecond)
		if b.Try(1) || b.Try(0) || a.Try(1) || b.At(stint.Highest).Try(1) {
			t.Error("Try went before one that waits")
		}
		if got := done.after(time.Second); got != "low" {
			t.Errorf("admitted %q", got)
		}
		got := []bool{b.Try(0), b.Try(11), b.Try(9), b.Try(2)}
		if !slices.Equal(got, []bool{true, false, true, false}) {
			t.Errorf("Try of 0, 11, 9, 2 after a wait: %t, %+v", got, b.Stats())
		}
	})
}

// TestB13_TryOfMoreThanItHolds: it takes nothing, not even for a moment, which the
// others would notice.
func TestB13_TryOfMoreThanItHolds(t *testing.T) {
	fake := buckettest.NewPool(100, 10).Join("a")
	l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: fake})
	if l.Try(11) || fake.Takes() != 0 {
		t.Errorf("Try of 11 where 10 is the most: asked for tokens %d times", fake.Takes())
	}
	if !l.Try(10) || l.Try(11) || fake.Takes() != 1 {
		t.Errorf("Try of all, and of more: asked for tokens %d times", fake.Takes())
	}
}

// A waiter for the rate of its own limiter does not keep other limiters from the shared
// tokens.
func TestB13_OwnRateOnTop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := buckettest.NewPool(100, 10)
		slow := stint.NewLimiter(10, stint.LimiterConfig{Capacity: 1, Bucket: pool.Join("slow")})
		fast := stint.NewLimiter(1000, stint.LimiterConfig{Bucket: pool.Join("fast")})
		ctx, cancel := context.WithCancel(t.Context())
		ofSlow, ofFast := flood(ctx, slow, stint.Highest, 5, 1), flood(ctx, fast, stint.Low, 5, 1)
		time.Sleep(10 * time.Second)
		cancel()
		synctest.Wait()
		if got := ofSlow.Load(); got < 100 || got > 101 {
			t.Errorf("%d tokens in 10 s at 10/s of its own", got)
		}
		if got := ofSlow.Load() + ofFast.Load(); got < 1009 || got > 1010 {
			t.Errorf("%d tokens in 10 s at 100/s of all", got)
		}
	})
}

func TestB13_MoreThanItHoldsIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := buckettest.NewPool(100, 10)
		l := stint.NewLimiter(500, stint.LimiterConfig{Capacity: 5, Bucket: pool.Join("a")})
		start := time.Now()
		if err := l.Wait(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		// Its own rate takes 2 s, and meanwhile the shared bucket is full.
		if got, want := time.Since(start), 11_890*time.Millisecond; got != want {
			t.Errorf("took %v, want %v", got, want)
		}
	})
}

// TestB13_GuardOverAll: a tier that is passed over by another process is admitted
// into debt after a second, and no caller gets tokens until that is repaid.
func TestB13_GuardOverAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := sharedRate(100, 10)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		start := time.Now()
		high := flood(ctx, a, stint.High, 3, 5)
		synctest.Wait()
		if err := b.At(stint.Low).Wait(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got < time.Second || got > 1100*time.Millisecond {
			t.Errorf("the lower tier was admitted after %v", got)
		}
		synctest.Wait()
		before := high.Load()
		time.Sleep(2800 * time.Millisecond)
		synctest.Wait()
		if got := high.Load(); got != before {
			t.Errorf("%d tokens while in debt", got-before)
		}
		time.Sleep(20*time.Second - time.Since(start))
		synctest.Wait()
		if got := high.Load() + 300; got < 1990 || got > 2000 {
			t.Errorf("%d tokens in 20 s at 100/s", got)
		}
	})
}

// TestB13_DebtsDoNotStack keeps lower tiers of several processes waiting for large
// amounts behind a flood.
func TestB13_DebtsDoNotStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, n = 100, 250
		_, a, b := sharedRate(rate, 10)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		counts := []*atomic.Int64{
			flood(ctx, a, stint.Highest, 3, 5),
			flood(ctx, a, stint.Low, 1, n),
			flood(ctx, b, stint.Lowest, 1, n),
			flood(ctx, b, stint.Normal, 1, n),
		}
		for s := range int64(300) {
			time.Sleep(time.Second)
			synctest.Wait()
			all := int64(0)
			for _, c := range counts {
				all += c.Load()
			}
			if most := rate*(s+1) + n; all > most || all < rate*(s+1)-n-10 {
				t.Fatalf("%d tokens in %d s: more than one debt at a time, or lost", all, s+1)
			}
		}
		for i, c := range counts {
			if c.Load() < 10*n {
				t.Errorf("flood %d got %d tokens in 300 s", i, c.Load())
			}
		}
	})
}

// TestB13_DebtsLeaveTheTopTierItsShare: time in which a debt of another process is
// repaid does not count as time in which a tier is passed over.
func TestB13_DebtsLeaveTheTopTierItsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rate, n = 100, 250
		pool, high, low := sharedRate(rate, 10)
		lower := stint.NewLimiter(0, stint.LimiterConfig{Bucket: pool.Join("c")})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got := flood(ctx, high, stint.Highest, 3, 5)
		flood(ctx, low, stint.Low, 1, n)
		flood(ctx, lower, stint.Lowest, 1, n)
		time.Sleep(300 * time.Second)
		if got := got.Load(); got < 300*rate/6 {
			t.Errorf("the highest tier got %d of %d tokens", got, 300*rate)
		}
	})
}

// TestB13_OwnRateIsNotForgiven: the rate of the limiter itself is a limit, whatever
// waits in other processes.
func TestB13_OwnRateIsNotForgiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := buckettest.NewPool(100, 50)
		a := stint.NewLimiter(0, stint.LimiterConfig{Bucket: pool.Join("a")})
		slow := stint.NewLimiter(1, stint.LimiterConfig{Capacity: 50, Bucket: pool.Join("slow")})
		slow.Try(50)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		flood(ctx, a, stint.High, 3, 5)
		start := time.Now()
		if err := slow.At(stint.Low).Wait(t.Context(), 40); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got < 40*time.Second || got > 45*time.Second {
			t.Errorf("40 tokens at 1/s of its own after %v", got)
		}
	})
}

func TestB13_CapacityWithoutARate(t *testing.T) {
	pool := buckettest.NewPool(1000, 100)
	if err := (stint.LimiterConfig{Capacity: 5, Bucket: pool.Join("a")}).Validate(0); err == nil {
		t.Error("a capacity without a rate is ignored")
	}
	if err := (stint.LimiterConfig{}).Validate(0); err == nil {
		t.Error("no rate at all")
	}
	l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: pool.Join("b")})
	wantPanic(t, "Capacity is 5", func() { l.SetCapacity(5) })
	l.SetCapacity(0)
	if got := l.Stats(); got.Capacity != 100 || got.Rate != 1000 {
		t.Errorf("%+v", got)
	}
	l.SetRate(10)
	l.SetCapacity(5)
	if got := l.Stats(); got.Capacity != 5 || got.Rate != 10 {
		t.Errorf("%+v", got)
	}
}

func TestB14_WhyOfTokensThatAreFarAway(t *testing.T) {
	f := buckettest.NewPool(1e-3, 10).Join("a")
	if _, _, err := f.Take(stint.Normal, 1<<34, true); err != nil {
		t.Fatal(err)
	}
	why := stint.NewLimiter(0, stint.LimiterConfig{Bucket: f}).Why(1)
	if len(why) != 1 || !why[0].FreeAt.After(time.Now()) {
		t.Errorf("%+v", why)
	}
}

func TestB13_GivingUpReturnsTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := sharedRate(100, 10)
		ctx, cancel := context.WithCancel(t.Context())
		var done log
		done.queue(ctx, "big", a.At(stint.High), 25)
		time.Sleep(150 * time.Millisecond) // 10 of 15 are with it
		synctest.Wait()
		cancel()
		synctest.Wait()
		if got := a.Stats(); got.Tokens != 10 || got.Queued != 0 || got.Shared.Waiting != 0 {
			t.Errorf("%+v after it gave up", got)
		}
		if !b.Try(10) {
			t.Error("its tokens are lost")
		}
	})
}

func TestB13_TokensThatCannotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, a, b := sharedRate(1, 1)
		var done log
		done.queue(t.Context(), "one", a.At(stint.High), 1000)
		done.queue(t.Context(), "two", a.At(stint.Low), 1)
		pool.Break(errors.New("gone"))
		if got := done.after(time.Second); got != "one:gone two:gone" && got != "two:gone one:gone" {
			t.Errorf("answers %q", got)
		}
		if err := b.Wait(t.Context(), 1); err == nil || err.Error() != "gone" {
			t.Errorf("a wait: %v", err)
		}
		if b.Try(1) {
			t.Error("Try took a token")
		}
		if why := b.Why(1); len(why) != 1 || why[0].Code != stint.CodeShared || why[0].By != "gone" {
			t.Errorf("%+v", why)
		}
		pool.Break(nil)
		if err := b.Wait(t.Context(), 1); err != nil {
			t.Error(err)
		}
	})
}

func TestB14_SharedStatsAndWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := buckettest.NewPool(100, 10)
		a := stint.NewLimiter(50, stint.LimiterConfig{Capacity: 500, Bucket: pool.Join("a")})
		b := stint.NewLimiter(0, stint.LimiterConfig{Bucket: pool.Join("b")})
		if why := b.Why(1); len(why) > 0 {
			t.Errorf("a full bucket: %+v", why)
		}
		var done log
		ctx, cancel := context.WithCancel(t.Context())
		done.queue(ctx, "a", a.At(stint.High), 200)
		done.queue(ctx, "b", b.At(stint.Normal), 1)
		s := a.Stats()
		if s.Rate != 50 || s.Capacity != 10 || s.Tokens != 0 || s.Queued != 1 || s.Shared.Rate != 100 ||
			s.Shared.Waiting != 2 || len(s.Shared.Waiters) != 2 {
			t.Errorf("%+v, %+v", s, s.Shared)
		}
		why := b.Why(1)
		if len(why) != 2 || why[0].Code != stint.CodeBehind || why[0].Ahead != [stint.Tiers]int{3: 1} {
			t.Fatalf("%+v", why)
		}
		if got := why[1]; got.Code != stint.CodeShared || got.By != "a" || got.Ahead != [stint.Tiers]int{4: 1} ||
			got.Tokens != 1 || !got.FreeAt.Equal(time.Now().Add(10*time.Millisecond)) {
			t.Errorf("%+v", got)
		}
		b.SetRate(20)
		if got := b.Stats(); got.Rate != 20 || got.Capacity != 10 {
			t.Errorf("%+v", got)
		}
		b.SetRate(0)
		if got := b.Stats(); got.Rate != 100 {
			t.Errorf("%+v", got)
		}
		cancel()
		synctest.Wait()
	})
}

func TestB13_StreamsPayForSharedChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := buckettest.NewPool(1000, 100)
		l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: pool.Join("a")})
		var sink strings.Builder
		start := time.Now()
		if _, err := l.Writer(t.Context(), &sink).Write(make([]byte, 2100)); err != nil || sink.Len() != 2100 {
			t.Fatal(err)
		}
		if got := time.Since(start); got < 2*time.Second || got > 2020*time.Millisecond {
			t.Errorf("took %v", got)
		}
	})
}

// TestB13_StreamOfAnUnknownBucket: it is slow, but goes on.
func TestB13_StreamOfAnUnknownBucket(t *testing.T) {
	fake := buckettest.NewPool(1000, 100).Join("a")
	l := stint.NewLimiter(0, stint.LimiterConfig{Bucket: unknown{fake}})
	if n, err := l.Reader(t.Context(), strings.NewReader("abc")).Read(make([]byte, 3)); n == 0 || err != nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	var sink strings.Builder
	if n, err := l.Writer(t.Context(), &sink).Write([]byte("abc")); n != 3 || err != nil {
		t.Errorf("wrote %d bytes, %v", n, err)
	}
}

// unknown is a bucket whose state cannot be read.
type unknown struct{ *buckettest.Fake }

func (unknown) Usage() stint.BucketUsage { return stint.BucketUsage{Err: "not connected yet"} }
