package queue_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
)

// A clock that is another one at each reading, by up to three seconds, repeats no
// tick and loses none.
func TestC8_TicksOnceThoughTheClockMovesBetweenReadings(t *testing.T) {
	rnd := seeded.Rand(t)
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, queue.Config{})
		var mu sync.Mutex
		r.SetWall(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(-time.Duration(rnd.Int64N(int64(3 * time.Second))))
		})
		begin := time.Now()
		r.schedule(queue.Schedule{Cron: "* * * * *", Missed: queue.MissedAll})
		r.start()
		time.Sleep(500*time.Minute + 10*time.Second)
		r.end()
		got := r.ticks("s")
		slices.SortFunc(got, time.Time.Compare)
		for i, tick := range got {
			if want := got[0].Add(time.Duration(i) * time.Minute); !tick.Equal(want) {
				t.Fatalf("tick %d is %v, want %v", i, tick, want)
			}
		}
		if got[0].After(begin.Add(time.Minute)) {
			t.Errorf("the first tick is %v from %v on", got[0], begin)
		}
		if last := got[len(got)-1]; time.Since(last) > time.Minute {
			t.Errorf("the last tick is %v at %v", last, time.Now())
		}
	})
}

// By a clock on which a tick has not come there is none, and it stays the next.
func TestC8_NoTickBeforeItHasCome(t *testing.T) {
	tick := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, missed := range []queue.Missed{queue.MissedOnce, queue.MissedSkip, queue.MissedAll} {
		s := queue.ScheduleState{Schedule: queue.Schedule{Name: "s", Cron: "0 12 * * *", Missed: missed}, Next: tick}
		for _, early := range []time.Duration{1, 2 * time.Second, 100 * 24 * time.Hour} {
			if ticks, next, err := s.Due(tick.Add(-early)); len(ticks) != 0 || !next.Equal(tick) || err != nil {
				t.Errorf("%s before its tick, %s gives the ticks %v, next %v, error %v", early, missed, ticks, next, err)
			}
		}
	}
}

// What one process puts off by a clock that is a year ahead, others try again as
// soon as if it were not.
func TestC8_RetryOfAClockFarAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, idle())
		ahead := &node{Queue: queue.New(r.store, idle())}
		ahead.SetWall(func() time.Time { return time.Now().AddDate(1, 0, 0) })
		if err := r.Configure(t.Context(), "full", queue.Settings{Pending: 1}); err != nil {
			t.Fatal(err)
		}
		blocker := r.submit("unknown", queue.Options{Queue: "full"})
		r.schedule(queue.Schedule{Cron: "@hourly", Task: queue.Spec{Options: queue.Options{Queue: "full"}}})
		ahead.start(t)
		synctest.Wait()
		ahead.end(t)
		if s := r.scheduled("s"); time.Until(s.Retry) < 300*24*time.Hour {
			t.Fatalf("the schedule is %+v", s)
		}
		r.command(queue.OrderCancel, blocker)
		r.start()
		time.Sleep(time.Hour)
		r.ticked("s", hours(1)...)
		r.end()
	})
}

// A process whose clock is set back while it waits looks again when it would have
// anyway, not when the clock has caught up.
func TestC8_ClockSetBackWhileLooking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTickRig(t, queue.Config{Poll: time.Minute})
		var mu sync.Mutex
		var back time.Duration
		readings := 0
		r.SetWall(func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			if readings++; readings == 2 { // between what is due and when to look again
				back = 5 * time.Hour
			}
			return time.Now().Add(-back)
		})
		r.start()
		other := &node{Queue: queue.New(r.store, queue.Config{})}
		s := queue.Schedule{Name: "s", Cron: "@every 10s", Task: queue.Spec{Kind: "k"}}
		if err := other.Schedule(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		back = 0
		mu.Unlock()
		time.Sleep(3 * time.Minute)
		if n := len(r.ticks("s")); n < 10 {
			t.Errorf("there are %d ticks", n)
		}
		r.end()
	})
}
