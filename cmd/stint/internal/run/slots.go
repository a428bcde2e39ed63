package run

import (
	"math/bits"
	"sync"
)

// slots numbers what runs, from 1: each job has the lowest number that is free,
// so that a job can be told which of a few devices or ports is its own. The
// zero value is ready for use, from any goroutine.
type slots struct {
	mu    sync.Mutex
	taken []uint64 // a bit for each number, 1 first
}

// take returns the lowest free number.
func (s *slots) take() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, word := range s.taken {
		if free := bits.TrailingZeros64(^word); free < 64 {
			s.taken[i] |= 1 << free
			return i*64 + free + 1
		}
	}
	s.taken = append(s.taken, 1)
	return (len(s.taken)-1)*64 + 1
}

// give frees a number.
func (s *slots) give(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[(n-1)/64] &^= 1 << ((n - 1) % 64)
}
