package measure

import "sync"

// Spread lets workers goroutines share n operations, and returns how many they
// did. Each is given its share and a number from 0. All of them are let go at
// the same time, since a goroutine that runs while others are still being
// started would have the subject to itself.
func Spread(n, workers int, work func(worker, share int) int) int {
	var ready, finished sync.WaitGroup
	gate := make(chan struct{})
	done := make([]int, workers)
	ready.Add(workers)
	for w := range workers {
		share := n / workers
		if w < n%workers {
			share++
		}
		finished.Go(func() {
			ready.Done()
			<-gate
			done[w] = work(w, share)
		})
	}
	ready.Wait()
	close(gate)
	finished.Wait()
	sum := 0
	for _, d := range done {
		sum += d
	}
	return sum
}
