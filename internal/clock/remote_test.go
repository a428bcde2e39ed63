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
