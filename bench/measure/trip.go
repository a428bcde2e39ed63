package measure

import (
	"math"
	"runtime"
	"sync/atomic"
)

// Two virtual cores may share a cache at one time and not at another. What both write
// then takes a different time, and not by the same factor for each subject. So a round is
// known by the distance of the cores: the time a cache line takes from one core to the
// other and back. What is close and what is far depends on the processor, so both have to
// be seen before either has a meaning.
const (
	tripsTimed = 10_000 // round trips of one measurement
	tripTries  = 3      // measurements, of which the shortest counts: others may have been interrupted

	// A round is of close cores if the cache line took at most closeTrip times as long as
	// the shortest trip ever, and of far ones from farTrip times on.
	closeTrip = 1.6
	farTrip   = 2.2
)

// Trip measures the distance of two cores in nanoseconds. It returns 0 if the program has
// only one. It keeps two cores busy for some 10 ms.
func Trip() float64 {
	if runtime.GOMAXPROCS(0) < 2 {
		return 0
	}
	shortest := math.Inf(1)
	for range tripTries {
		shortest = min(shortest, timeTrips())
	}
	return shortest
}

func timeTrips() float64 {
	var line struct {
		_    [64]byte
		turn atomic.Int64
		_    [64]byte
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := int64(1); i < 2*tripsTimed; i += 2 {
			for line.turn.Load() != i {
			}
			line.turn.Store(i + 1)
		}
	}()
	start := Now()
	for i := int64(0); i < 2*tripsTimed; i += 2 {
		line.turn.Store(i + 1)
		for line.turn.Load() != i+2 {
		}
	}
	took := Since(start)
	<-done
	return float64(took.Nanoseconds()) / tripsTimed
}

// Distance is the results of [Trip] right before and right after a sample.
type Distance struct{ Before, After float64 }

// Cores is the state of the two cores during a sample.
type Cores string

// The states that are compared. In between, or if the state changes within a sample, the
// sample counts for neither.
const (
	Close Cores = "close"
	Far   Cores = "far"
)

// state returns the state of a sample, or "" if seen does not determine it.
func (d Distance) state(seen Trips) Cores {
	switch low, high := min(d.Before, d.After), max(d.Before, d.After); {
	case low == 0 || seen.Longest < farTrip*seen.Shortest:
		return ""
	case high <= closeTrip*seen.Shortest:
		return Close
	case low >= farTrip*seen.Shortest:
		return Far
	default:
		return ""
	}
}

// Trips are the shortest and the longest of some trips, in nanoseconds; zeros for none.
type Trips struct {
	Shortest float64 `json:"shortest_ns"`
	Longest  float64 `json:"longest_ns"`
}

// With returns the trips of both.
func (t Trips) With(other Trips) Trips {
	if t.Shortest == 0 || 0 < other.Shortest && other.Shortest < t.Shortest {
		t.Shortest = other.Shortest
	}
	return Trips{t.Shortest, max(t.Longest, other.Longest)}
}

// Trips returns the trips around the samples.
func (r Result) Trips() (trips Trips) {
	for _, distances := range r.Distances {
		for _, d := range distances {
			trips = trips.With(Trips{min(d.Before, d.After), max(d.Before, d.After)})
		}
	}
	return trips
}

// RatioOf is Ratio of the rounds in which the cores had the given state during both
// samples, and the number of these rounds. seen are the trips of this processor so far.
func (r Result) RatioOf(state Cores, seen Trips, subject, against, reading string) (ratio float64, rounds int) {
	if len(r.Distances) == 0 {
		return math.NaN(), 0
	}
	i, j := r.index(subject), r.index(against)
	var a, b []float64
	for round := range r.Samples[i] {
		if r.Distances[i][round].state(seen) == state && r.Distances[j][round].state(seen) == state {
			a = append(a, r.Samples[i][round][reading])
			b = append(b, r.Samples[j][round][reading])
		}
	}
	return MedianRatio(a, b), len(a)
}
