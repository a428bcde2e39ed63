package stint_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint"
)

// A million keys that were used leave nothing behind when they are full again, though
// the limiter is no longer used.
func TestB12_IdleKeysCostNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(0, stint.LimiterConfig{PerKey: 10, KeyCapacity: 100})
		l.Key("a").Try(1)
		before := heap()
		for i := range 1_000_000 {
			l.Key(fmt.Sprintf("tenant %d with a name that is not short", i)).Try(int64(1 + i%40))
		}
		if got := l.Stats().Keys; got < 1_000_000 {
			t.Errorf("%d keys are remembered while none is full", got)
		}
		full := heap()
		time.Sleep(6 * time.Second) // the last are full after 4 s
		synctest.Wait()
		if got := l.Stats().Keys; got != 0 {
			t.Errorf("%d keys are remembered", got)
		}
		left := int64(heap()) - int64(before)
		if left > 64<<10 {
			t.Errorf("%d bytes are left of %d", left, full-before)
		}
		runtime.KeepAlive(l)
	})
}

// Keys for which many have waited leave nothing behind either.
func TestB12_KeysThatWaitedCostNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(1e6, stint.LimiterConfig{PerKey: 10})
		wait := func(from, keys int) {
			var wg sync.WaitGroup
			for i := range keys {
				wg.Go(func() { _ = l.Key(fmt.Sprint(from+i)).Wait(t.Context(), 12) })
			}
			synctest.Wait()
			if got := l.Stats(); got.Queued != keys || got.Keys != keys {
				t.Errorf("%+v, want that %d wait", got, keys)
			}
			wg.Wait()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			if got := l.Stats(); got.Queued != 0 || got.Keys != 0 {
				t.Errorf("%+v when all are idle", got)
			}
		}
		wait(0, 20_000) // the runtime keeps what it has of as many goroutines
		before := heap()
		wait(20_000, 20_000)
		if left := int64(heap()) - int64(before); left > 64<<10 {
			t.Errorf("%d bytes are left", left)
		}
		runtime.KeepAlive(l)
	})
}

// While new keys keep coming, no more than about twice as many are remembered as are not
// full: here those of the last tenth of a second.
func TestB12_KeysThatComeOnceAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := stint.NewLimiter(0, stint.LimiterConfig{PerKey: 10, KeyCapacity: 1000})
		most := 0
		for i := range 200_000 { // 100 of them a millisecond, so 10,000 are not full
			l.Key(fmt.Sprint(i)).Try(1)
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
			most = max(most, l.Stats().Keys)
		}
		if most > 21_000 || most < 10_000 {
			t.Errorf("%d keys were remembered at a time, want up to about 20,000", most)
		}
	})
}

// An unused limiter is garbage at once, though its keys would be full in days.
func TestB12_KeysDoNotKeepTheirLimiter(t *testing.T) {
	l := stint.NewLimiter(0, stint.LimiterConfig{PerKey: 1e-6})
	l.Key("a").Try(1)
	gone := l.Collected()
	for range 5 {
		runtime.GC()
	}
	if !gone() {
		t.Error("something still refers to an unused limiter")
	}
}
