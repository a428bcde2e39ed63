package sched

import "time"

// now and stamps.age are the only places where the package reads the clock.
func now() time.Time { return time.Now() } //nolint:forbidigo // the clock itself

// stamps are the times at which entries arrive and start. The clock is not read for each
// of many in quick succession: that would cost as much as queueing. Each stamp is larger
// than the one before, so stamps also give the order of arrival.
type stamps struct {
	born     time.Time
	last     int64   // the last stamp, in nanoseconds since born
	arrivals sampler // decide for which arrivals the clock is read
	finishes sampler // decide for which finishes the clock is read
}

// read reads the clock.
func (s *stamps) read() int64 {
	at := s.age()
	s.last = max(s.last, at)
	s.arrivals.noticed(at)
	s.finishes.noticed(at)
	return at
}

// age returns the time since the engine was made, in nanoseconds. It does not call now,
// which would read the time of day too.
func (s *stamps) age() int64 { return int64(time.Since(s.born)) } //nolint:forbidigo // the clock itself

// time converts a stamp to a time by the present time of day.
func (s *stamps) time(stamp int64) time.Time { return byPresent(s.born.Add(time.Duration(stamp))) }

// byPresent returns t by the present time of day: that of t may be from before the system's clock was
// set.
func byPresent(t time.Time) time.Time {
	at := now()
	return at.Add(t.Sub(at))
}

// sampler decides for which events of one kind the clock is read: for each, unless they
// have come faster than one in fastEvery for some time, and then for every 16th.
type sampler struct {
	at     int64 // time of the last reading
	events int32 // since the last reading
	fast   int32 // consecutive readings between which events came fast
}

const (
	fastEvery = 2000 // nanoseconds; a reading takes some 40
	fastRow   = 8
	readEvery = 16
)

// due counts an event, and reports whether the clock has to be read for it.
func (s *sampler) due() bool {
	s.events++
	return s.exact() || s.events >= readEvery
}

// exact reports whether the clock is read for each event.
func (s *sampler) exact() bool { return s.fast < fastRow }

// noticed records a reading of the clock, whatever its purpose.
func (s *sampler) noticed(at int64) {
	switch {
	case at-s.at >= fastEvery*int64(max(s.events, 1)):
		s.at, s.events, s.fast = at, 0, 0
	case s.events > 0:
		s.at, s.events, s.fast = at, 0, min(s.fast+1, fastRow)
	}
}
