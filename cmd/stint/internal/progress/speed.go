package progress

import "time"

// window is the time over which the speed is measured: long enough that one slow job does
// not make the estimate jump, short enough to follow a change of -j.
const window = 30 * time.Second

// samples is how many observations a window has.
const samples = 30

// speed estimates how many jobs end per second, over the last window. The zero value is
// ready for use. It is for one goroutine.
type speed struct {
	ring  [samples]sample
	first int // the oldest sample
	n     int
}

type sample struct {
	at    time.Time
	ended int64
}

// observe records how many jobs have ended by now. Observations close to each other are
// merged.
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

// perSecond returns the speed up to now, when ended jobs have ended; 0 if it is unknown.
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

// Estimate is the speed of a run and the time that it will take.
type Estimate struct {
	PerSecond float64
	Left      time.Duration // 0 if it is unknown
}

// estimate returns the estimate for a snapshot at now.
func (s *speed) estimate(now time.Time, snap Snapshot) Estimate {
	ended := snap.Succeeded + snap.Failed
	s.observe(now, ended)
	e := Estimate{PerSecond: s.perSecond(now, ended)}
	total := snap.Total
	if total == 0 {
		total = snap.Guess
	}
	if total > 0 {
		e.Left = TimeLeft(total-snap.Done(), e.PerSecond)
	}
	return e
}

// TimeLeft returns how long the rest of a job takes at a speed; 0 if nothing is left, if the speed is 0,
// and above a century, which would be meaningless.
func TimeLeft(left int64, perSecond float64) time.Duration {
	if left <= 0 || perSecond <= 0 {
		return 0
	}
	seconds := float64(left) / perSecond
	if seconds >= 100*365*24*3600 {
		return 0
	}
	return time.Duration(seconds * float64(time.Second))
}
