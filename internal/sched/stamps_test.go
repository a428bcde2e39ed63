package sched //nolint:testpackage // the readings of the clock cannot be seen from outside

import (
	"testing"
	"time"
	"unsafe"
)

// A stamp is shown by the present time of day, also if the system's clock has been set since the
// engine was made: by then its time of birth is an hour off, with the same monotonic reading.
func TestB6_TimeOfAStampAfterTheClockWasSet(t *testing.T) {
	for _, hours := range []int64{-1, 1} {
		s := stamps{born: now()}
		setBack(&s.born, hours)
		wantPresent(t, s.time(s.age()), hours)
	}
}

// The same of the beginning of a pause.
func TestB6_TimeOfAPauseAfterTheClockWasSet(t *testing.T) {
	for _, hours := range []int64{-1, 1} {
		e := New(Config{Limit: 1})
		e.Limits().Pause("test")
		setBack(&e.limits.paused.Since, hours)
		wantPresent(t, e.Why(Ask{Weight: 1, Tier: 3}, func() {}).Pause.Since, hours)
	}
}

// setBack makes at a time that was read before the clock was set back.
func setBack(at *time.Time, hours int64) {
	const second = 1 << 30 // of the first word of a time.Time that has a monotonic reading
	word := (*uint64)(unsafe.Pointer(at))
	*word += uint64(hours * 3600 * second)
}

// wantPresent checks a time of the past minute.
func wantPresent(t *testing.T, at time.Time, hours int64) {
	t.Helper()
	at = at.Round(0) // without the monotonic reading
	if off := time.Until(at); off < -time.Minute || off > time.Minute {
		t.Errorf("after the clock was set back by %d h a time of now is %v off", hours, off)
	}
}

// The clock is read for each event if they come slowly, and for one in 16 if they come fast. A
// reading for another reason also ends a run of fast events.
func TestB6_ReadingsOfTheClock(t *testing.T) {
	var s sampler
	at := int64(0)
	read := func(n int, every int64) (read int) {
		for range n {
			at += every
			if s.due() {
				s.noticed(at)
				read++
			}
		}
		return read
	}
	if n := read(100, 2*fastEvery); n != 100 {
		t.Errorf("%d readings for 100 slow arrivals", n)
	}
	if n := read(fastRow+160, 100); n != fastRow+10 {
		t.Errorf("%d readings for %d fast arrivals, want %d", n, fastRow+160, fastRow+10)
	}
	if n := read(100, 2*fastEvery); n < 100-readEvery || s.fast != 0 {
		t.Errorf("%d readings for 100 arrivals after fast ones", n)
	}
	read(100, 100)
	at += 100 * fastEvery
	if s.noticed(at); !s.exact() {
		t.Error("much later the clock is still not read for each")
	}
}
