package stint_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// Each key has a rate of its own, and begins with a full bucket.
func TestB10_KeysHaveTheirOwnRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(0, stint.LimiterConfig{PerKey: 10, KeyCapacity: 3})
		a, b := l.Key("a"), l.Key("b")
		if !a.Try(3) || a.Try(1) || !b.Try(2) || b.Try(2) || b.Try(-1) || !a.Try(0) {
			t.Error("Try does not count by key")
		}
		if !l.Try(1_000_000) {
			t.Error("without a key there is a limit")
		}
		start := time.Now()
		for i := range 20 {
			if err := a.Wait(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			if got, want := time.Since(start), time.Duration(i+1)*100*time.Millisecond; got != want {
				t.Fatalf("token %d after %v, want %v", i+1, got, want)
			}
		}
		if err := b.Wait(t.Context(), 9); err != nil || time.Since(start) != 2600*time.Millisecond {
			t.Errorf("more than the capacity took until %v, %v", time.Since(start), err)
		}
	})
}

// A key that has used up its rate does not block other keys; keys take turns at the rate
// that they share, and their tiers hold there too.
func TestB10_KeysTakeTurnsAtTheOverallRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(10, stint.LimiterConfig{Capacity: 10, PerKey: 100, KeyCapacity: 5})
		l.Try(10)
		var done log
		for i := range 3 {
			done.queue(t.Context(), fmt.Sprint("a", i), l.Key("a"), 1)
		}
		done.queue(t.Context(), "nobody", l, 1)
		done.queue(t.Context(), "b0", l.Key("b"), 1)
		done.queue(t.Context(), "b1", l.Key("b"), 1)
		done.queue(t.Context(), "high", l.Key("c").At(stint.High), 1)
		if got, want := done.after(900*time.Millisecond), "high a0 nobody b0 a1 b1 a2"; got != want {
			t.Errorf("admitted %q, want %q", got, want)
		}
		l.SetRate(1000)
		if !l.Key("a").Try(2) {
			t.Error("a key has no tokens")
		}
		time.Sleep(10 * time.Millisecond)
		l.SetPerKey(1)
		done.queue(t.Context(), "a", l.Key("a"), 30)
		if !l.Key("b").Try(1) || !l.Try(1) {
			t.Error("one key keeps others waiting")
		}
		if got := done.after(time.Minute); got != "a" {
			t.Errorf("admitted %q", got)
		}
	})
}

// In a key the guard admits a tier that has been passed over for a second, into the debt of
// the key alone.
func TestB11_GuardOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(1000, stint.LimiterConfig{PerKey: 100, KeyCapacity: 10})
		a := l.Key("a")
		ctx, cancel := context.WithCancel(t.Context())
		high := flood(ctx, a, stint.High, 3, 5)
		synctest.Wait()
		start := time.Now()
		if err := a.At(stint.Low).Wait(t.Context(), 300); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(start); got < time.Second || got > 1050*time.Millisecond {
			t.Errorf("the lower tier was admitted after %v", got)
		}
		if got := a.Stats().Tokens; got > -290 {
			t.Errorf("the key holds %d tokens, want a debt", got)
		}
		if l.Stats().Tokens < 0 || !l.Key("b").Try(10) {
			t.Error("the debt of a key is one of others")
		}
		time.Sleep(20*time.Second - time.Since(start))
		cancel()
		synctest.Wait()
		if got := high.Load() + 300; got < 1990 || got > 2010 {
			t.Errorf("%d tokens in 20 s at 100/s", got)
		}
	})
}

// A waiter that gives up returns the tokens of the key and of the limiter, also if it was
// granted at that moment.
func TestB10_GivingUpReturnsTheTokensOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 10, PerKey: 50, KeyCapacity: 10})
		a := l.Key("a")
		ctx, cancel := context.WithCancelCause(t.Context())
		var done log
		done.queue(ctx, "big", a, 100) // has its key's overflow put aside
		done.queue(t.Context(), "small", a, 1)
		time.Sleep(time.Second)
		cancel(errors.New("gone"))
		synctest.Wait()
		if got := done.take(); got != "big:gone small" && got != "small big:gone" {
			t.Errorf("admitted %q", got)
		}
		if s := a.Stats(); s.Tokens != 9 || s.Queued != 0 || l.Stats().Tokens != 9 {
			t.Errorf("the key %+v, the limiter %+v", s, l.Stats())
		}

		ctx, release := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer release()
		var refusal *stint.DeadlineError
		const says = "stint: the tokens are available in 220ms at the earliest, after the context's deadline"
		if err := a.Wait(ctx, 20); !errors.As(err, &refusal) || refusal.Wait != 220*time.Millisecond || err.Error() != says {
			t.Errorf("a wait that its deadline cannot meet: %v, want %q", err, says)
		}
		if after, ok := a.TryAfter(10); ok || after != 20*time.Millisecond || a.Delay(20) != 220*time.Millisecond {
			t.Errorf("come back after %v, or wait for %v", after, a.Delay(20))
		}
		if after, _ := a.TryAfter(11); after != stint.Never {
			t.Errorf("more than the key's capacity after %v", after)
		}
	})
}

func TestB14_StatsAndWhyOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 10, PerKey: 10, KeyCapacity: 4})
		a, start := l.Key("a"), time.Now()
		after := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
		a.Try(4)
		l.Try(6)
		if s := a.Stats(); s.Rate != 10 || s.Capacity != 4 || s.Tokens != 0 || s.Keys != 1 {
			t.Errorf("the key: %+v", s)
		}
		if s := l.Stats(); s.Rate != 100 || s.Capacity != 10 || s.Tokens != 0 {
			t.Errorf("the limiter: %+v", s)
		}
		ofKey := stint.Reason{Code: stint.CodeRate, Key: "a", Tokens: 2, FreeAt: after(200)}
		own := stint.Reason{Code: stint.CodeRate, Tokens: 2, FreeAt: after(20)}
		if got, want := a.Why(2), []stint.Reason{ofKey, own}; !reflect.DeepEqual(got, want) {
			t.Errorf("reasons %+v, want %+v", got, want)
		}
		if got, want := l.Key("b").Why(2), []stint.Reason{own}; !reflect.DeepEqual(got, want) {
			t.Errorf("reasons of an idle key %+v, want %+v", got, want)
		}
		var done log
		done.queue(t.Context(), "b", l.Key("b"), 2)
		done.queue(t.Context(), "a-1", a, 2)
		done.queue(t.Context(), "a-2", a.At(stint.Low), 1)
		done.queue(t.Context(), "nobody", l, 3)
		var keys []string
		for _, w := range l.Waiting() {
			keys = append(keys, fmt.Sprintf("%s:%d@%v<%d", w.Key, w.Tokens, w.FreeAt.Sub(start), w.Ahead))
		}
		if got, want := strings.Join(keys, " "), "b:2@20ms<0 :3@50ms<1 a:2@200ms<2 a:1@300ms<3"; got != want {
			t.Errorf("waiting: %s, want %s", got, want)
		}
		if s := l.Stats(); s.Queued != 4 || s.QueuedBy[2] != 1 || a.Stats().Queued != 2 || l.Key("c").Stats().Queued != 0 {
			t.Errorf("%+v, of the key %+v", s, a.Stats())
		}
		if got := done.after(50 * time.Millisecond); got != "b nobody" {
			t.Errorf("admitted %q", got)
		}
		if got := done.after(250 * time.Millisecond); got != "a-1 a-2" {
			t.Errorf("admitted %q", got)
		}
	})
}

// A change of the rate per key reaches the waiters. Keys keep the tokens that they hold,
// and full keys stay full.
func TestB10_SetPerKeyReachesWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(0, stint.LimiterConfig{PerKey: 1})
		a, b := l.Key("a"), l.Key("b")
		a.Try(1)
		var done log
		done.queue(t.Context(), "a", a, 5)
		time.Sleep(time.Second)
		l.SetPerKey(1000)
		if got := done.after(4 * time.Millisecond); got != "a" {
			t.Errorf("admitted %q", got)
		}
		if a.Try(1) || !b.Try(1000) || b.Try(1) {
			t.Errorf("after the change a key holds %+v, the other %+v", a.Stats(), b.Stats())
		}
		l.SetRate(100)
		l.SetPerKey(0)
		if !b.Try(100) || b.Try(1) {
			t.Error("without a rate per key there is one")
		}
	})
}

// While a rate is 0, for none, the capacity that belongs to it is ignored, and applies again when
// the rate is set.
func TestB10_CapacityWithoutItsRateIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(100, stint.LimiterConfig{Capacity: 40, PerKey: 10, KeyCapacity: 20})
		a := l.Key("a")
		l.SetPerKey(0)
		if s := a.Stats(); s.Rate != 100 || s.Capacity != 40 {
			t.Errorf("without a rate per key, a key has %v a second and capacity %d; want 100 and 40", s.Rate, s.Capacity)
		}
		if !a.Try(40) || l.Try(1) {
			t.Error("without a rate per key, a key does not get the limiter's 40 tokens and no more")
		}
		l.SetCapacity(50)
		l.SetRate(200)
		l.SetPerKey(10)
		if s := a.Stats(); s.Rate != 10 || s.Capacity != 20 {
			t.Errorf("with a rate per key again, a key has %v a second and capacity %d; want 10 and 20", s.Rate, s.Capacity)
		}
		l.SetRate(0)
		time.Sleep(2 * time.Second)
		if s := a.Stats(); s.Rate != 10 || s.Capacity != 20 || !a.Try(20) || a.Try(1) {
			t.Errorf("without a rate of its own, the limiter of a key has %+v; want the key's 20 tokens", s)
		}
		l.SetPerKey(30)
		l.SetRate(200)
		if s := l.Stats(); s.Rate != 200 || s.Capacity != 50 {
			t.Errorf("with its rate again, the limiter has %v a second and capacity %d; want 200 and 50", s.Rate, s.Capacity)
		}
		wantPanic(t, "rate", func() { l.SetRate(-1) })
		wantPanic(t, "rate", func() { l.SetPerKey(-1) })
	})
}

// For no tokens a key's callers wait for those before them in the key and tier, and not for
// the limiter's queue.
func TestB10_NoTokensOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(1, stint.LimiterConfig{PerKey: 10})
		l.Try(1)
		var done log
		done.queue(t.Context(), "nobody", l, 60)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if a := l.Key("a"); a.Delay(0) != 0 || len(a.Why(0)) > 0 || a.Wait(ctx, 0) != nil {
			t.Errorf("no tokens are waited for: %v, %+v", a.Delay(0), a.Why(0))
		}
		a := l.Key("a")
		a.Try(10)
		done.queue(t.Context(), "one", a, 1)
		done.queue(t.Context(), "none", a, 0)
		if got := l.Waiting(); len(got) != 3 || got[2].Tokens != 0 || got[2].Ahead != 1 || len(got[2].Reasons) != 1 {
			t.Errorf("%+v", got)
		}
		if got := done.after(time.Minute + time.Second); got != "nobody one none" && got != "nobody none one" {
			t.Errorf("admitted %q", got)
		}
	})
}

func TestB10_InvalidKeyLimits(t *testing.T) {
	for _, test := range []struct {
		rate float64
		cfg  stint.LimiterConfig
		say  string
	}{
		{1, stint.LimiterConfig{PerKey: -1}, "PerKey: rate -1"},
		{1, stint.LimiterConfig{PerKey: math.NaN()}, "PerKey: rate NaN"},
		{
			1,
			stint.LimiterConfig{KeyCapacity: 1},
			"KeyCapacity is 1 without a PerKey rate: set PerKey, or leave KeyCapacity out",
		},
		{1, stint.LimiterConfig{PerKey: 1, KeyCapacity: -1}, "KeyCapacity -1"},
		{
			0,
			stint.LimiterConfig{PerKey: 1, Capacity: 1},
			"Capacity is 1, but the limiter has no rate of its own: set a rate, or leave Capacity out",
		},
		{0, stint.LimiterConfig{}, "rate 0"},
	} {
		if err := test.cfg.Validate(test.rate); err == nil || !strings.Contains(err.Error(), test.say) {
			t.Errorf("%v, %+v: %v, want %q", test.rate, test.cfg, err, test.say)
		}
	}
	l := stint.NewLimiter(0, stint.LimiterConfig{PerKey: 1})
	wantPanic(t, "rate", func() { l.SetPerKey(0) })
	wantPanic(t, "rate", func() { l.SetPerKey(math.Inf(1)) })
	if !l.Key("a").Try(1) { // and its lock is free
		t.Error("a refused rate broke the limiter")
	}
}

// Streams of a key keep to its rate, in chunks of its rate.
func TestB12_StreamOfAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(1e6, stint.LimiterConfig{PerKey: 1000, KeyCapacity: 100})
		var sink strings.Builder
		start := time.Now()
		n, err := l.Key("a").Writer(t.Context(), &sink).Write(make([]byte, 2100))
		if n != 2100 || err != nil || time.Since(start) != 2*time.Second {
			t.Errorf("wrote %d bytes in %v, %v", n, time.Since(start), err)
		}
	})
}

// Keys, the limiter's own rate and one that is shared hold together.
func TestB13_KeysOfASharedRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, l, other := sharedRate(100, 10)
		l.SetPerKey(30)
		ctx, cancel := context.WithCancel(t.Context())
		a, b := flood(ctx, l.Key("a"), stint.Normal, 3, 1), flood(ctx, l.Key("b"), stint.Normal, 1, 1)
		rest := flood(ctx, other, stint.Low, 2, 1)
		time.Sleep(100 * time.Second)
		cancel()
		synctest.Wait()
		for _, got := range []int64{a.Load(), b.Load()} {
			if got < 2_990 || got > 3_031 {
				t.Errorf("%d tokens of a key in 100 s at 30/s", got)
			}
		}
		if got := rest.Load(); got < 3_930 || got > 4_010 {
			t.Errorf("%d tokens for the other process, want 40/s", got)
		}
		if had, out := a.Load()+b.Load()+rest.Load()+10, pool.Out(); had != out {
			t.Errorf("%d tokens had, %d were taken and not returned", had, out)
		}
	})
}

// TestB10_KeyedEverythingAtOnce has all methods called at the same time, on keys that are
// forgotten and remembered again all the time. The race detector looks on, and no key gets
// more than its rate.
func TestB10_KeyedEverythingAtOnce(t *testing.T) {
	const rate, capacity, names = 20_000, 10, 40
	start := time.Now()
	l := stint.NewLimiter(1e6, stint.LimiterConfig{PerKey: rate, KeyCapacity: capacity})
	var taken [names]atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 400 {
				name := (n*7 + i) % names
				at := l.Key(fmt.Sprint(name)).At(stint.Lowest + stint.Priority(n%stint.Tiers))
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(n)*5*time.Microsecond)
				if n%3 == 0 && at.Try(2) {
					taken[name].Add(2)
				}
				switch err := at.Wait(ctx, 3); {
				case err == nil:
					taken[name].Add(3)
				case !errors.Is(err, context.DeadlineExceeded):
					t.Error(err)
				}
				cancel()
				l.Key(fmt.Sprint("once ", i, n)).Try(1)
			}
		})
	}
	wg.Go(func() {
		for i := range 100 {
			l.SetRate(float64(1+i%7) * 1e5)
			l.SetPerKey(rate / float64(1+i%3))
			l.Stats()
			l.Key("1").Why(2)
			l.Waiting()
			l.Key("2").TryAfter(20)
		}
	})
	wg.Wait()
	// A debt is admitted when a tier has waited for a second, longer than any tier here.
	most := int64(time.Since(start).Seconds()*rate) + capacity + 1
	for i := range taken {
		if got := taken[i].Load(); got > most {
			t.Errorf("key %d got %d tokens, at most %d were to be had", i, got, most)
		}
	}
	if got := l.Stats(); got.Queued != 0 {
		t.Errorf("%+v left", got)
	}
}
