package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/internal/clock"
)

// TestRemote: a remote clock shows the other time from the first reading on; when the other
// clock is set, it grows on, and approaches it by 1/200 of the time.
func TestRemote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ahead, way = 10 * time.Minute, 20 * time.Millisecond
		var r clock.Remote
		read := func(ahead time.Duration) {
			sent := time.Now()
			time.Sleep(way / 2)
			shown := time.Now().Add(ahead)
			time.Sleep(way / 2)
			r.Read(shown, sent, time.Now())
		}
		off := func() time.Duration { return r.Now().Sub(time.Now().Round(0)) }

		read(ahead)
		if got := off(); got != ahead {
			t.Errorf("it is %v ahead, want %v", got, ahead)
		}
		for range 10 { // answers that take longer in one direction are no reason to correct it
			time.Sleep(time.Second)
			read(ahead + way/2)
			if got := off(); got != ahead {
				t.Errorf("it is %v ahead, want %v", got, ahead)
			}
		}
		for _, set := range []time.Duration{-time.Minute, time.Minute} {
			before := off()
			for range 10 {
				last := r.Now()
				time.Sleep(time.Second)
				read(before + set)
				if got := r.Now().Sub(last); got < 990*time.Millisecond || got > 1030*time.Millisecond {
					t.Errorf("the clock, which was set by %v, made %v in a second", set, got)
				}
			}
			moved := off() - before
			if part := 10 * time.Second / 200; moved.Abs() < part || moved.Abs() > part+part/10 || moved < 0 != (set < 0) {
				t.Errorf("it was moved by %v in 10 s after it was set by %v", moved, set)
			}
		}
	})
}

// While the machine is suspended, the monotonic clock stands still, and the other clock goes on: the remote clock
// catches up at once, if the other one has really gone on, and only by as much.
func TestRemoteAfterASuspension(t *testing.T) {
	const slept, since = 8 * time.Hour, 3 * time.Hour // before the first reading
	for name, c := range map[string]struct{ gone, slept, want time.Duration }{
		"suspended":                         {slept, slept, slept},
		"the other clock was set back, too": {slept - time.Hour, slept, slept - time.Hour},
		"the other clock was set ahead":     {slept + time.Hour, slept, slept},
		"both machines were suspended":      {0, slept, 0},
		"only the other clock was set":      {slept, 0, 0},
		"an inexact reading":                {slept, 20 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r clock.Remote
				now := time.Now()
				r.ReadAfter(since, now, now, now)
				time.Sleep(time.Second)
				now = time.Now()
				r.ReadAfter(since+c.slept, now.Add(c.gone), now, now)
				ahead := r.Now().Sub(now.Round(0))
				if ahead < c.want || ahead > c.want+10*time.Millisecond { // and what it corrects in any second
					t.Errorf("it has gone on by %v, want %v", ahead, c.want)
				}
			})
		})
	}
}

// The time of suspension does not go back, and is not negative.
func TestSuspended(t *testing.T) {
	if first, second := clock.Suspended(), clock.Suspended(); first < -time.Second || second < first-time.Second {
		t.Errorf("%v and then %v", first, second)
	}
}
