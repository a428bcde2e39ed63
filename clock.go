package stint

import "time"

// now is the package's only look at the time of day.
func now() time.Time { return time.Now() } //nolint:forbidigo // the clock itself

// stamps tells when entries arrived and how fast they start, without reading
// the clock for each: that costs as much as queueing.
type stamps struct {
	arrivals uint
	last     int64 // what was read last, in nanoseconds since the core was made
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
// and that of the last reading for those between.
func (s *stamps) stamp(born time.Time, exact bool) int64 {
	if s.arrivals%readEvery == 0 || exact {
		s.last = int64(now().Sub(born))
		if s.last-s.marks[1].at >= markEvery {
			s.marks[0], s.marks[1] = s.marks[1], mark{s.last, s.started}
		}
	}
	s.arrivals++
	return s.last
}

// rate is the recent number of starts a second, 0 if there is no basis for one.
func (s *stamps) rate(at int64) float64 {
	for i := len(s.marks) - 1; i >= 0; i-- {
		m := s.marks[i]
		if elapsed := at - m.at; elapsed >= markEvery && s.started > m.started {
			return float64(s.started-m.started) / time.Duration(elapsed).Seconds()
		}
	}
	return 0
}
