package csync

// Spares returns how many used waiters s keeps: a bound that cannot be seen from
// outside but in the memory of the process.
func (s *Semaphore) Spares() int { return s.permits.queue.spares }

// MaxSpare is the most that there may be.
const MaxSpare = maxSpare
