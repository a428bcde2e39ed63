package sched

import "time"

// now is the package's only look at the time of day.
func now() time.Time { return time.Now() } //nolint:forbidigo // the clock itself

// stamps tells when entries arrived and how fast they start, without reading
// the clock for each: that costs as much as queueing. Each stamp is larger than the one
// before, so that they tell the order of arrival too.
type stamps struct {
	born     time.Time
	arrivals uint
	last     int64 // the last stamp, in nanoseconds since born
	started  uint64
	marks    [2]mark // the older one is at least markEvery before the newer
}

type mark struct {
	at      int64
	started uint64
}

const (
	readEvery = 16 // arrivals to a reading, while others wait
	markEvery = int64(time.Second)
)

// stamp returns the time of an arrival: exact if it must be and for every 16th,
// and that of the one before for those between, but for a nanosecond each.
func (s *stamps) stamp(exact bool) int64 {
	s.last++
	if s.arrivals%readEvery == 0 || exact {
		s.last = max(s.last, s.age())
		if s.last-s.marks[1].at >= markEvery {
			s.marks[0], s.marks[1] = s.marks[1], mark{s.last, s.started}
		}
	}
	s.arrivals++
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
