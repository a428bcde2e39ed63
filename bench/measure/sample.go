package measure

import (
	"fmt"
	"runtime"
)

// sample lets one subject work once, from a clean heap.
func (s Subject) sample(st *Stage) (Values, error) {
	defer st.close()
	if s.Probe != nil {
		runtime.GC()
		values, err := s.Probe(st)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		return values, nil
	}
	loop := s.Loop(st)
	// Pools start their goroutines and slices find their size before the clock
	// starts: what is wanted is the cost of going on, not of beginning.
	if err := s.check(loop(warmUp(st.N)), warmUp(st.N)); err != nil {
		return nil, err
	}
	return s.timed(loop, st.N)
}

func warmUp(n int) int { return max(1, n/20) }

// timed reads the counters of the heap outside the timed part, because reading
// them stops the world.
func (s Subject) timed(loop Loop, n int) (Values, error) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	start := Now()
	done := loop(n)
	elapsed := Since(start)
	runtime.ReadMemStats(&after)
	return Values{
		Time:   float64(elapsed.Nanoseconds()) / float64(n),
		Allocs: float64(after.Mallocs-before.Mallocs) / float64(n),
		Bytes:  float64(after.TotalAlloc-before.TotalAlloc) / float64(n),
	}, s.check(done, n)
}

// check keeps a subject from being fast by leaving work out.
func (s Subject) check(done, n int) error {
	if done != n {
		return fmt.Errorf("%s: did %d of %d operations", s.Name, done, n)
	}
	return nil
}
