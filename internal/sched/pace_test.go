package sched //nolint:testpackage // the counts of starts cannot be seen from outside

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A flood of a higher tier that arrives at once does not count as the usual rate.
func TestB6_PaceOfAFlood(t *testing.T) {
	const low, high, limit = 2, 4, 4
	var p pace
	at := int64(0)
	second := func(arrivals, starts int) {
		at += int64(time.Second)
		p.read(at, 1<<low|1<<high, limit)
		for range arrivals {
			p.arrive(high, limit)
		}
		for range starts {
			p.start(high, false)
			p.start(low, false)
		}
	}
	for range 100 {
		second(1, 1)
	}
	before := p
	second(1000, 1)
	second(1, 1)
	every, share := p.of(low)
	_, was := before.of(low)
	if share < was-0.05 {
		t.Errorf("%.2f of the starts bring an entry nearer, and before the flood %.2f", share, was)
	}
	if want := float64(time.Second) * limit / 2; every < 0.95*want || every > 1.05*want {
		t.Errorf("a start takes %v, want %v", time.Duration(every), time.Duration(want))
	}
}

// Starts on slots that were free are not counted: they say nothing about how soon slots
// come free.
func TestB6_PaceAfterAChangeOfTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := New(Config{Limit: 1})
		var g Group
		g.Init(t.Context(), e, Ask{Weight: 1})
		for range 20 {
			g.Go(func(context.Context) error { time.Sleep(time.Second); return nil })
		}
		wantStarted := func(want float64) {
			t.Helper()
			synctest.Wait()
			e.lock()
			defer e.unlock()
			e.queue.read()
			if got := e.queue.pace.all.started; got != want {
				t.Errorf("%v starts are counted, want %v", got, want)
			}
		}
		e.Limits().Resize(10)
		wantStarted(0)
		time.Sleep(time.Second)
		wantStarted(10)
		_ = g.Wait()
		wantStarted(10)
	})
}
