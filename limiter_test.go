package stint_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// empty returns a limiter from which the first burst has been taken.
func empty(t *testing.T, rate float64, capacity int64) stint.Limiter {
	t.Helper()
	l := stint.NewLimiter(rate, stint.LimiterConfig{Capacity: capacity})
	if !l.Try(l.Stats().Capacity) {
		t.Fatal("a new limiter is not full")
	}
	return l
}

// log records the names of waiters in the order of their admission.
type log struct {
	mu    sync.Mutex
	names []string
}

func (l *log) add(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.names = append(l.names, name)
}

func (l *log) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	names := strings.Join(l.names, " ")
	l.names = nil
	return names
}

// queue starts a wait whose end is recorded, and returns once it waits.
func (l *log) queue(ctx context.Context, name string, at stint.Limiter, n int64) {
	go func() {
		if err := at.Wait(ctx, n); err != nil {
			name += ":" + err.Error()
		}
		l.add(name)
	}()
	synctest.Wait()
}

// after lets virtual time pass and returns the names that were admitted meanwhile.
func (l *log) after(d time.Duration) string {
	time.Sleep(d)
	synctest.Wait()
	return l.take()
}

func TestB10_WaitAtTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 100, 10)
		start := time.Now()
		for i := range 1000 {
			if err := l.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(start), time.Duration(i+1)*10*time.Millisecond; got != want {
				t.Fatalf("token %d after %v, want %v", i+1, got, want)
			}
		}
	})
}

func TestB10_TryOnlyIfEnoughAndNoWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 10})
		if l.Try(11) || l.Try(-1) || !l.Try(0) || !l.Try(10) || l.Try(1) {
			t.Error("Try does not count")
		}
		var done log
		done.queue(t.Context(), "low", l.At(stint.Lowest), 10)
		time.Sleep(50 * time.Millisecond)
		if l.Try(1) || l.Try(0) || l.At(stint.Highest).Try(1) {
			t.Error("Try went before one that waits")
		}
		if got := done.after(50 * time.Millisecond); got != "low" {
			t.Errorf("admitted %q", got)
		}
		if !l.Try(0) || l.Try(1) {
			t.Error("Try does not count after a wait")
		}
	})
}

func TestB10_PrioritiesAndOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 1000, 10)
		var done log
		low := stint.WithPriority(t.Context(), stint.Low)
		done.queue(low, "highest-1", l.At(stint.Highest), 1) // the view's tier, not the context's
		done.queue(low, "normal-1", l.At(stint.Normal), 2)
		go func() { // the context's tier
			if l.Wait(stint.WithPriority(t.Context(), stint.High), 3) == nil {
				done.add("high-1")
			}
		}()
		synctest.Wait()
		done.queue(low, "highest-2", l.At(stint.Highest), 5)
		done.queue(low, "normal-2", l.At(stint.Normal), 1)
		want := "highest-1 highest-2 high-1 normal-1 normal-2"
		if got := done.after(12 * time.Millisecond); got != want {
			t.Errorf("admitted %q, want %q", got, want)
		}
	})
}

// A Limiter is a value: copies share the tokens, and At changes only the copy that it
// returns.
func TestB10_CopiesShareTheTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 10, 10)
		high := l.At(stint.High)
		if high == l || high.At(stint.Low) != l.At(stint.Low) {
			t.Error("At changes the limiter it is called on, or adds to an earlier At")
		}
		var done log
		lowest := stint.WithPriority(t.Context(), stint.Lowest)
		done.queue(lowest, "context", l, 1) // at the context's tier, after a copy set another
		done.queue(lowest, "copy", high, 1)
		if l.Stats() != high.Stats() || l.Stats().QueuedBy[0] != 1 || l.Stats().QueuedBy[4] != 1 {
			t.Errorf("%+v, and of the copy %+v", l.Stats(), high.Stats())
		}
		if got := done.after(time.Second); got != "copy context" {
			t.Errorf("admitted %q", got)
		}
	})
}

func TestB10_ZeroNeverWaitsForTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 10, 10)
		if err := l.Wait(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		var done log
		done.queue(t.Context(), "one", l.At(stint.Normal), 1)
		done.queue(t.Context(), "none", l.At(stint.Normal), 0)
		done.queue(t.Context(), "other", l.At(stint.Low), 0)
		if got := done.take(); got != "other" {
			t.Errorf("admitted %q", got)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		if got := strings.Fields(done.take()); len(got) != 2 || !slices.Contains(got, "none") {
			t.Errorf("admitted %q", got)
		}
	})
}

func TestB10_MoreThanTheCapacityIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 10})
		start := time.Now()
		if err := l.Wait(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
		if got, want := time.Since(start), 9900*time.Millisecond; got != want {
			t.Errorf("took %v, want %v", got, want)
		}
	})
}

func TestB10_Refusals(t *testing.T) {
	l := stint.NewLimiter(1, stint.LimiterConfig{})
	if err := l.Wait(t.Context(), -1); !errors.Is(err, stint.ErrNegative) {
		t.Errorf("a negative number: %v", err)
	}
	why := errors.New("the caller went home")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	for _, wait := range []func(context.Context, int64) error{l.Wait, l.At(stint.High).Wait} {
		if err := wait(ctx, 1); !errors.Is(err, why) {
			t.Errorf("a context that has ended: %v", err)
		}
	}
	if got := l.Stats().Tokens; got != 1 {
		t.Errorf("%d tokens left after refusals, want 1", got)
	}
}

func TestB10_GivingUpIsAsIfNeverThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 100, 10)
		ctx, cancel := context.WithCancelCause(t.Context())
		var done log
		done.queue(ctx, "big", l.At(stint.Normal), 100)
		done.queue(t.Context(), "small", l.At(stint.Normal), 7)
		time.Sleep(75 * time.Millisecond)
		cancel(errors.New("gone"))
		synctest.Wait()
		if got := l.Stats(); got.Queued != 1 || got.Tokens != 7 {
			// It has not given its tokens to the next.
			if got := done.take(); got != "big:gone small" && got != "small big:gone" {
				t.Errorf("admitted %q", got)
			}
		}
		if got := l.Stats(); got.Queued != 0 || got.Tokens != 0 {
			t.Errorf("%+v afterwards", got)
		}
		if got := done.after(50 * time.Millisecond); got != "" || !l.Try(5) || l.Try(1) {
			t.Errorf("admitted %q", got)
		}
	})
}

// The system's clock may have been set since the limiter was made: a deadline without a
// monotonic reading is as far away as that clock says now, and so is the time of a grant.
func TestB10_ClockThatWasSetBack(t *testing.T) {
	l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 1})
	l.SetBack(2 * time.Hour) // outside a bubble, whose times have no monotonic reading
	begin := time.Now().Round(0)
	if !l.Try(1) {
		t.Fatal("no token")
	}
	ctx, cancel := context.WithDeadline(t.Context(), begin.Add(time.Hour))
	defer cancel()
	if err := l.Wait(ctx, 1); err != nil {
		t.Errorf("Wait with a deadline in an hour: %v", err)
	}
	for _, r := range l.Why(100) {
		if r.FreeAt.Round(0).After(begin.Add(time.Hour)) {
			t.Errorf("the tokens come at %v, and it is %v", r.FreeAt, begin)
		}
	}
}

// A wait that its context's deadline would cut short is refused at once. Its error has how
// long it would be, counting the waiters before it but not lower tiers. An entry that the
// guard may admit in time waits.
func TestB10_DeadlineIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 10, 10)
		began := time.Now()
		try := func(p stint.Priority, n int64, within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			return l.At(p).Wait(ctx, n)
		}
		refused := func(p stint.Priority, n int64, within, want time.Duration) {
			t.Helper()
			var refusal *stint.DeadlineError
			if err := try(p, n, within); !errors.As(err, &refusal) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%d tokens within %v: error %v, want a refusal", n, within, err)
			} else if refusal.Wait != want || l.At(p).Delay(n) != want {
				t.Errorf("%d tokens take %v, delay %v, want %v", n, refusal.Wait, l.At(p).Delay(n), want)
			}
			if waited := time.Since(began); waited != 0 {
				t.Errorf("the refusal came after %v", waited)
			}
		}
		refused(stint.Normal, 5, 499*time.Millisecond, 500*time.Millisecond)
		refused(stint.Normal, 25, 2*time.Second, 2500*time.Millisecond) // more than the capacity
		go func() { _ = l.At(stint.Normal).Wait(t.Context(), 20) }()
		synctest.Wait()
		refused(stint.Normal, 5, 2*time.Second, 2500*time.Millisecond)
		refused(stint.High, 5, 400*time.Millisecond, 500*time.Millisecond) // before the one that waits
		refused(stint.Low, 5, 900*time.Millisecond, time.Second)           // at which the guard may admit it
		if err := try(stint.Low, 5, 1100*time.Millisecond); err != nil {
			t.Errorf("a wait that the guard ends in time: %v", err)
		}
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("the guard came after %v", waited)
		}
		if delay := l.Delay(-1); delay != 0 {
			t.Errorf("a negative number takes %v", delay)
		}
		time.Sleep(time.Minute)
		if delay := l.Delay(10); delay != 0 {
			t.Errorf("what is to be had at once takes %v", delay)
		}
	})
}

// TestB10_CancelledAsGranted lets grants and cancellations race. A Wait that returned
// the cancellation has returned its tokens.
func TestB10_CancelledAsGranted(t *testing.T) {
	for range 200 {
		start := time.Now()
		l := empty(t, 1e6, 1000)
		var got atomic.Int64
		var wg sync.WaitGroup
		for i := range 8 {
			ctx, cancel := context.WithCancel(t.Context())
			wg.Go(func() {
				if l.Wait(ctx, int64(10+i)) == nil {
					got.Add(int64(10 + i))
				}
			})
			wg.Go(cancel)
		}
		wg.Wait()
		s := l.Stats()
		if earned := time.Since(start).Microseconds() + 1; s.Queued != 0 || got.Load()+s.Tokens > earned {
			t.Fatalf("%+v and %d tokens taken after %d were earned", s, got.Load(), earned)
		}
	}
}

func TestB10_SetRateReachesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 1, 10)
		var done log
		done.queue(t.Context(), "a", l.At(stint.Normal), 5)
		done.queue(t.Context(), "b", l.At(stint.Normal), 5)
		time.Sleep(time.Second)
		l.SetRate(1000)
		if got := done.after(4 * time.Millisecond); got != "a" {
			t.Errorf("admitted %q", got)
		}
		l.SetRate(0.5)
		if got := done.after(10*time.Second - time.Nanosecond); got != "" {
			t.Errorf("admitted %q at the old rate", got)
		}
		if got := done.after(time.Nanosecond); got != "b" {
			t.Errorf("admitted %q", got)
		}
	})
}

func TestB10_CapacityFollowsTheRateUnlessSet(t *testing.T) {
	l := stint.NewLimiter(0.1, stint.LimiterConfig{})
	want := func(capacity int64) {
		t.Helper()
		if got := l.Stats().Capacity; got != capacity {
			t.Errorf("capacity %d, want %d", got, capacity)
		}
	}
	want(1)
	l.SetRate(1234.5)
	want(1234)
	l.SetCapacity(7)
	want(7)
	l.SetRate(10)
	want(7)
	l.SetCapacity(0)
	want(10)
}

func TestB10_CapacityOfWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(10, stint.LimiterConfig{Capacity: 100})
		var done log
		done.queue(t.Context(), "big", l.At(stint.Normal), 200)
		time.Sleep(5 * time.Second)
		l.SetCapacity(1) // what the bucket held was for the one that waits
		if got := done.after(5 * time.Second); got != "big" {
			t.Errorf("admitted %q", got)
		}
	})
}

func TestB10_InvalidLimits(t *testing.T) {
	for _, rate := range []float64{0, -1, 1e-7, 1<<34 + 4, math.NaN(), math.Inf(1)} {
		err := stint.LimiterConfig{Capacity: -1}.Validate(rate)
		if err == nil || !strings.Contains(err.Error(), "rate") || !strings.Contains(err.Error(), "capacity -1") {
			t.Errorf("rate %v: %v, want both problems", rate, err)
		}
		l := stint.NewLimiter(1, stint.LimiterConfig{})
		wantPanic(t, "rate", func() { stint.NewLimiter(rate, stint.LimiterConfig{}) })
		wantPanic(t, "rate", func() { l.SetRate(rate) })
		if !l.Try(1) { // and its lock is free
			t.Error("a refused rate broke the limiter")
		}
	}
	for _, rate := range []float64{1e-6, 1, 1 << 34} {
		if err := (stint.LimiterConfig{Capacity: 1 << 56}).Validate(rate); err != nil {
			t.Errorf("rate %v: %v", rate, err)
		}
	}
	l := stint.NewLimiter(1, stint.LimiterConfig{})
	wantPanic(t, "capacity", func() { l.SetCapacity(-1) })
	wantPanic(t, "capacity", func() { l.SetCapacity(1<<56 + 1) })
	wantPanic(t, "tier", func() { l.At(4) })
}

func wantPanic(t *testing.T, say string, fn func()) {
	t.Helper()
	defer func() {
		t.Helper()
		if got := fmt.Sprint(recover()); !strings.Contains(got, say) {
			t.Errorf("panic %q, want one about the %s", got, say)
		}
	}()
	fn()
}

// TestB11_DebtIsBounded: however much a lower tier asks for, a debt lasts ten seconds at most,
// and both tiers get tokens.
func TestB11_DebtIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, n = 100, 10_000
		l := empty(t, perSecond, 10)
		ctx, cancel := context.WithCancel(t.Context())
		high := flood(ctx, l, stint.Highest, 3, 5)
		synctest.Wait()
		start := time.Now()
		low := make(chan time.Duration, 1)
		go func() {
			if err := l.At(stint.Lowest).Wait(t.Context(), n); err != nil {
				t.Error(err)
			}
			low <- time.Since(start)
		}()
		for len(low) == 0 {
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if got := l.At(stint.Highest).Delay(1); got > 10_500*time.Millisecond {
				t.Fatalf("a token is free after %v", got)
			}
		}
		took := <-low
		const debt = 10 * perSecond
		if got, want := high.Load(), int64(perSecond*took.Seconds())-n; got < n/20 || got < want-debt || got > want+debt+10 {
			t.Errorf("in %v the higher tier gets %d tokens, want about %d", took, got, want)
		}
		cancel()
	})
}

func TestB11_StarvationGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 100, 10)
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		var high atomic.Int64
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for l.At(stint.High).Wait(ctx, 5) == nil {
					high.Add(5)
				}
			})
		}
		synctest.Wait()
		if err := l.At(stint.Low).Wait(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got < time.Second || got > 1050*time.Millisecond {
			t.Errorf("the lower tier was admitted after %v", got)
		}
		if got := l.Stats().Tokens; got > -295 {
			t.Errorf("%d tokens, want a debt", got)
		}
		synctest.Wait()
		before := high.Load()
		time.Sleep(2900 * time.Millisecond)
		synctest.Wait()
		if got := high.Load(); got != before {
			t.Errorf("%d tokens while in debt", got-before)
		}
		time.Sleep(20*time.Second - time.Since(start))
		synctest.Wait()
		if got := high.Load() + 300; got < 1990 || got > 2000 {
			t.Errorf("%d tokens in 20 s at 100/s", got)
		}
		cancel()
		wg.Wait()
	})
}

// TestB12_IdleLimiterHoldsNothing checks that an idle limiter has no goroutine, since a
// bubble does not end before its goroutines, and that an unused limiter is collected.
func TestB12_IdleLimiterHoldsNothing(t *testing.T) {
	var gone func() bool
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 1, 1)
		gone = l.Collected()
		var done log
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		done.queue(ctx, "one", l.At(stint.High), 1)
		done.queue(ctx, "more", l.At(stint.Normal), 100_000)
		if got := done.after(time.Hour); got != "one" {
			t.Errorf("admitted %q", got)
		}
		if got := done.after(time.Hour); !strings.HasPrefix(got, "more:context deadline") {
			t.Errorf("admitted %q", got)
		}
	})
	for range 5 {
		runtime.GC()
	}
	if !gone() {
		t.Error("something still refers to an unused limiter")
	}
}

func TestB14_Stats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 10})
		want := stint.LimiterStats{Rate: 100, Capacity: 10, Tokens: 10}
		check := func() {
			t.Helper()
			if got := l.Stats(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		check()
		l.Try(9)
		time.Sleep(20 * time.Millisecond)
		want.Tokens = 3
		check()
		var done log
		ctx, cancel := context.WithCancel(t.Context())
		done.queue(ctx, "a", l.At(stint.Highest), 200)
		done.queue(ctx, "b", l.At(stint.Lowest), 50)
		done.queue(ctx, "c", l.At(stint.Lowest), 1)
		want.Queued, want.QueuedBy = 3, [stint.Tiers]int{0: 2, 6: 1}
		check()
		time.Sleep(time.Second) // the guard admits b, after 93 tokens for a
		synctest.Wait()
		want.Tokens, want.Queued, want.QueuedBy = -40, 2, [stint.Tiers]int{0: 1, 6: 1}
		check()
		l.SetRate(1000)
		cancel()
		synctest.Wait()
		want.Rate, want.Tokens, want.Queued, want.QueuedBy = 1000, 10, 0, [stint.Tiers]int{}
		check() // the tokens granted to a were returned
	})
}

func TestB14_Why(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 10})
		if got := l.Why(1); len(got) > 0 {
			t.Errorf("a full bucket: %+v", got)
		}
		l.Try(10)
		start := time.Now()
		got := l.Why(1)
		if len(got) != 1 || got[0].Code != stint.CodeRate || got[0].Tokens != 1 ||
			!got[0].FreeAt.Equal(start.Add(10*time.Millisecond)) {
			t.Errorf("an empty bucket: %+v", got)
		}
		var done log
		done.queue(t.Context(), "a", l.At(stint.High), 5)
		done.queue(t.Context(), "b", l.At(stint.Normal), 5)
		done.queue(t.Context(), "c", l.At(stint.Low), 5)
		got = l.Why(1)
		if len(got) != 2 || got[0].Code != stint.CodeBehind || got[1].Code != stint.CodeRate {
			t.Fatalf("a queue: %+v", got)
		}
		if want := [stint.Tiers]int{3: 1, 4: 1}; got[0].Ahead != want {
			t.Errorf("ahead of a normal one: %v, want %v", got[0].Ahead, want)
		}
		if got := l.At(stint.Highest).Why(1); len(got) != 1 || got[0].Code != stint.CodeRate {
			t.Errorf("the highest tier: %+v", got)
		}
		if got := done.after(time.Second); got != "a b c" {
			t.Errorf("admitted %q", got)
		}
	})
}

// TestB10_NeverAboveRateUnderContention lets goroutines take what they can.
func TestB10_NeverAboveRateUnderContention(t *testing.T) {
	const rate, capacity = 1e6, 500
	start := time.Now()
	l := stint.NewLimiter(rate, stint.LimiterConfig{Capacity: capacity})
	var taken atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for range 2000 {
				if l.Try(1) {
					taken.Add(1)
				}
				if i%4 == 0 && l.Wait(t.Context(), 2) == nil {
					taken.Add(2)
				}
			}
		})
	}
	wg.Wait()
	if got, most := taken.Load(), int64(time.Since(start).Seconds()*rate)+capacity+1; got > most {
		t.Errorf("%d tokens, at most %d were earned", got, most)
	}
	if got := l.Stats(); got.Queued != 0 {
		t.Errorf("%+v left", got)
	}
}

// TestB10_EverythingAtOnce has all methods called at the same time. The race
// detector looks on.
func TestB10_EverythingAtOnce(t *testing.T) {
	l := stint.NewLimiter(1e6, stint.LimiterConfig{Capacity: 100})
	var wg sync.WaitGroup
	for i := range stint.Tiers {
		at := l.At(stint.Lowest + stint.Priority(i))
		wg.Go(func() {
			for n := range int64(300) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*10*time.Microsecond)
				if err := at.Wait(ctx, n%150); err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
				at.Try(1)
			}
		})
	}
	wg.Go(func() {
		for i := range 300 {
			l.SetRate(float64(1+i%7) * 1e6)
			l.SetCapacity(int64(1 + i))
			l.Stats()
			l.Why(1)
		}
	})
	wg.Wait()
	if got := l.Stats(); got.Queued != 0 {
		t.Errorf("%+v left", got)
	}
}
