package progress

import "time"

// window is how far back the speed looks: long enough that one slow job does
// not make the estimate jump, short enough to follow a change of -j.
const window = 30 * time.Second

// samples is how many observations a window holds.
const samples = 30

// speed estimates how many jobs end per second, over the last window. The zero
// value is ready for use. It is for one goroutine.
type speed struct {
	ring  [samples]sample
	first int // the oldest sample
	n     int
}

type sample struct {
	at    time.Time
	ended int64
}

// observe notes how many jobs have ended by now. Observations that come close
// together are one.
func (s *speed) observe(now time.Time, ended int64) {
	if s.n > 0 && now.Sub(s.newest().at) < window/samples {
		return
	}
	if s.n == samples {
		s.first = (s.first + 1) % samples
		s.n--
	}
	s.ring[(s.first+s.n)%samples] = sample{now, ended}
	s.n++
}

func (s *speed) newest() sample { return s.ring[(s.first+s.n-1)%samples] }

// perSecond is the speed up to now, with so many ended; 0 while it is unknown.
func (s *speed) perSecond(now time.Time, ended int64) float64 {
	if s.n == 0 {
		return 0
	}
	oldest := s.ring[s.first]
	took := now.Sub(oldest.at).Seconds()
	if took <= 0 {
		return 0
	}
	return float64(ended-oldest.ended) / took
}

// Estimate is how fast a run goes and how long it will take.
type Estimate struct {
	PerSecond float64
	Left      time.Duration // 0 if it is unknown
}

// estimate looks at a snapshot of now.
func (s *speed) estimate(now time.Time, snap Snapshot) Estimate {
	ended := snap.Succeeded + snap.Failed
	s.observe(now, ended)
	e := Estimate{PerSecond: s.perSecond(now, ended)}
	total := snap.Total
	if total == 0 {
		total = snap.Guess
	}
	if left := total - snap.Done(); total > 0 && left > 0 && e.PerSecond > 0 {
		// Above a century it says nothing, and would overflow.
		if seconds := float64(left) / e.PerSecond; seconds < 100*365*24*3600 {
			e.Left = time.Duration(seconds * float64(time.Second))
		}
	}
	return e
}
