package sched

import "time"

// now is the package's only look at the time of day.
func now() time.Time { return time.Now() } //nolint:forbidigo // the clock itself

// stamps tells when entries arrive and start, without reading the clock for each of many that
// come fast: that costs as much as queueing. Each stamp is larger than the one before, so that
// they tell the order of arrival too.
type stamps struct {
	born     time.Time
	last     int64   // the last stamp, in nanoseconds since born
	arrivals sampler // have the clock read, and
	finishes sampler // so do these
}

// read reads the clock.
func (s *stamps) read() int64 {
	at := s.age()
	s.last = max(s.last, at)
	s.arrivals.noticed(at)
	s.finishes.noticed(at)
	return at
}

// age is the time since the engine was made, in nanoseconds.
func (s *stamps) age() int64 { return int64(now().Sub(s.born)) }

// time is that of a stamp.
func (s *stamps) time(stamp int64) time.Time { return s.born.Add(time.Duration(stamp)) }

// sampler decides for which events of one kind the clock is read: for each, unless they come
// faster than one in fastEvery for some time, and then for every 16th.
type sampler struct {
	at     int64 // the last event that had the clock read, and
	events int32 // those since
	fast   int32 // readings in a row between which they came fast
}

const (
	fastEvery = 2000 // nanoseconds; a reading takes some 40
	fastRow   = 8
	readEvery = 16
)

// due counts an event, and reports whether the clock is to be read for it.
func (s *sampler) due() bool {
	s.events++
	return s.exact() || s.events >= readEvery
}

// exact reports whether the clock is read for each event.
func (s *sampler) exact() bool { return s.fast < fastRow }

// noticed takes a reading of the clock into account, whatever it was for.
func (s *sampler) noticed(at int64) {
	switch {
	case at-s.at >= fastEvery*int64(max(s.events, 1)):
		s.at, s.events, s.fast = at, 0, 0
	case s.events > 0:
		s.at, s.events, s.fast = at, 0, min(s.fast+1, fastRow)
	}
}
