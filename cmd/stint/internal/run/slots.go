package run

import (
	"math/bits"
	"sync"
)

// slots assigns numbers to running jobs: each job has the lowest free number, starting at
// 1, so that it can choose one of a few devices or ports by it. The zero value is ready
// for use, and safe for concurrent use.
type slots struct {
	mu    sync.Mutex
	taken []uint64 // one bit per number, 1 first
}

// take takes the lowest free number.
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
