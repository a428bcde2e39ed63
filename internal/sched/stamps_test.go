package sched //nolint:testpackage // the readings of the clock cannot be seen from outside

import "testing"

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
