package sched

import "time"

// now is the package's only look at the time of day.
func now() time.Time { return time.Now() } //nolint:forbidigo // the clock itself

// stamps tells when entries arrived and how fast they start, without reading
// the clock for each: that costs as much as queueing. Each stamp is larger than the one
// before, so that they tell the order of arrival too.
type stamps struct {
	born     time.Time
	last     int64   // the last stamp, in nanoseconds since born
	arrivals sampler // have the clock read
	started  uint64
	marks    [2]mark // the older one is at least markEvery before the newer
}

type mark struct {
	at      int64
	started uint64
}

const markEvery = int64(time.Second)

// stamp returns the time of an arrival: exact if it must be, or arrivals come slowly; else
// it may be that of the one before, but for a nanosecond.
func (s *stamps) stamp(exact bool) int64 {
	s.last++
	if s.arrivals.due() || exact {
		at := s.age()
		s.last = max(s.last, at)
		s.arrivals.noticed(at)
		if s.last-s.marks[1].at >= markEvery {
			s.marks[0], s.marks[1] = s.marks[1], mark{s.last, s.started}
		}
	}
	return s.last
}

// age is the time since the engine was made, in nanoseconds.
func (s *stamps) age() int64 { return int64(now().Sub(s.born)) }

// time is that of a stamp.
func (s *stamps) time(stamp int64) time.Time { return s.born.Add(time.Duration(stamp)) }

// rate is the recent number of starts a second, 0 if there is no basis for one.
func (s *stamps) rate() float64 {
	at := s.age()
	for i := len(s.marks) - 1; i >= 0; i-- {
		m := s.marks[i]
		if elapsed := at - m.at; elapsed >= markEvery && s.started > m.started {
			return float64(s.started-m.started) / time.Duration(elapsed).Seconds()
		}
	}
	return 0
}

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
