package stint_test

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/internal/buckettest"
)

// Why answers for the tokens that it is asked about: what three of seven held tokens do
// not wait for, eight do.
func TestB14_WhyForTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 10})
		l.Try(3)
		start := time.Now()
		short := func(n int64, after time.Duration) []stint.Reason {
			return []stint.Reason{{Code: stint.CodeRate, Tokens: n, FreeAt: start.Add(after)}}
		}
		check := func(n int64, got, want []stint.Reason) {
			t.Helper()
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%d tokens: %+v, want %+v", n, got, want)
			}
		}
		check(7, l.Why(7), nil)
		check(8, l.Why(8), short(1, 10*time.Millisecond))
		check(57, l.Why(57), short(50, 500*time.Millisecond)) // more than the capacity is throttled
		check(-1, l.Why(-1), nil)

		var done log
		done.queue(t.Context(), "high", l.At(stint.High), 20)
		behind := stint.Reason{Code: stint.CodeBehind, Ahead: [stint.Tiers]int{4: 1}}
		check(7, l.Why(7), []stint.Reason{behind})
		check(8, l.Why(8), append([]stint.Reason{behind}, short(1, 10*time.Millisecond)...))
		check(0, l.Why(0), nil) // waits for its own tier only
		check(0, l.At(stint.High).Why(0), []stint.Reason{behind})
		check(7, l.At(stint.Highest).Why(7), nil)
		if got := done.after(time.Second); got != "high" {
			t.Errorf("admitted %q", got)
		}
	})
}

// Waiting lists the waiters in their order, with what they asked for, since when, why,
// and when they will be admitted, which is exact.
func TestB14_WaitingOfALimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := empty(t, 100, 10)
		if got := l.Waiting(); len(got) > 0 {
			t.Errorf("%+v without waiters", got)
		}
		start := time.Now()
		after := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
		rate := func(n int64, ms int) stint.Reason {
			return stint.Reason{Code: stint.CodeRate, Tokens: n, FreeAt: after(ms)}
		}
		behind := func(ahead [stint.Tiers]int) stint.Reason {
			return stint.Reason{Code: stint.CodeBehind, Ahead: ahead}
		}
		var done log
		done.queue(t.Context(), "low", l.At(stint.Low), 30)
		time.Sleep(20 * time.Millisecond)
		done.queue(t.Context(), "high-1", l.At(stint.High), 5)
		done.queue(t.Context(), "high-2", l.At(stint.High), 10)
		want := []stint.LimiterWaiting{
			{
				Priority: stint.High, Tokens: 5, Since: after(20),
				Reasons: []stint.Reason{rate(3, 50)}, FreeAt: after(50),
			}, {
				Priority: stint.High, Tokens: 10, Since: after(20), Ahead: 1,
				Reasons: []stint.Reason{behind([stint.Tiers]int{4: 1}), rate(8, 100)}, FreeAt: after(150),
			}, {
				Priority: stint.Low, Tokens: 30, Since: start, Ahead: 2,
				Reasons: []stint.Reason{behind([stint.Tiers]int{4: 2}), rate(28, 300)}, FreeAt: after(450),
			},
		}
		if got := l.Waiting(); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v,\nwant %+v", got, want)
		}
		for i, name := range []string{"high-1", "high-2", "low"} {
			until := time.Until(want[i].FreeAt)
			if got := done.after(until - 1); got != "" {
				t.Errorf("%s admitted before its time", got)
			}
			if got := done.after(1); got != name {
				t.Errorf("%q admitted at the time of %s", got, name)
			}
		}
	})
}

// Where a rate is shared, the time is no earlier than the shared tokens.
func TestB14_WaitingForSharedTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, a, b := sharedRate(100, 10)
		ctx, cancel := context.WithCancel(t.Context())
		var done log
		done.queue(ctx, "other", b.At(stint.High), 5)
		done.queue(ctx, "one", a, 7)
		got := a.Waiting()
		if len(got) != 1 || len(got[0].Reasons) != 1 {
			t.Fatalf("%+v, want one that waits for one reason", got)
		}
		r := got[0].Reasons[0]
		until := time.Until(got[0].FreeAt)
		if r.Code != stint.CodeShared || r.Tokens != 7 || r.By != "b" || until != 70*time.Millisecond {
			t.Errorf("%+v", got[0])
		}
		cancel()
		synctest.Wait()
	})
}

// TryAfter returns after which time a try succeeds if no other call comes in between.
func TestB10_TryAfterIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 10})
		check := func(n int64, want time.Duration) {
			t.Helper()
			if after, ok := l.TryAfter(n); ok != (want == 0) || after != want {
				t.Errorf("%d tokens: %v, %t, want %v", n, after, ok, want)
			}
		}
		check(10, 0)
		check(4, 40*time.Millisecond)
		check(11, stint.Never) // a wait for them is throttled, but a try is refused for ever
		check(-1, stint.Never)
		check(0, 0)
		var done log
		done.queue(t.Context(), "lowest", l.At(stint.Lowest), 15)
		if delay := l.At(stint.High).Delay(4); delay != 40*time.Millisecond {
			t.Errorf("Delay(4) = %v, want 40 ms", delay)
		}
		check(4, 190*time.Millisecond) // when no entry of any tier waits any more
		check(0, 150*time.Millisecond)
		time.Sleep(190*time.Millisecond - time.Nanosecond)
		check(4, 1)
		time.Sleep(time.Nanosecond)
		check(4, 0)
	})
}

func TestB13_TryAfterOfASharedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := buckettest.NewPool(100, 10)
		a := stint.NewLimiter(0, stint.LimiterConfig{Bucket: pool.Join("a")})
		slower := stint.NewLimiter(10, stint.LimiterConfig{Bucket: pool.Join("b")})
		check := func(l stint.Limiter, n int64, want time.Duration) {
			t.Helper()
			if after, ok := l.TryAfter(n); ok != (want == 0) || after != want {
				t.Errorf("%d tokens: %v, %t, want %v", n, after, ok, want)
			}
		}
		check(slower, 10, 0)
		check(a, 5, 50*time.Millisecond)
		check(slower, 5, 500*time.Millisecond)
		check(a, 11, stint.Never)
	})
}
