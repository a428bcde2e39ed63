package stint

import "sync"

// spinMutex is a mutex for sections of a few dozen instructions. A goroutine
// that finds it taken looks again for as long as a section takes before it
// parks: sync.Mutex parks at once when other goroutines are ready to run, which
// costs ten times as much as the section.
type spinMutex struct{ mu sync.Mutex }

const spins = 200

func (m *spinMutex) Lock() {
	for range spins {
		if m.mu.TryLock() {
			return
		}
	}
	m.mu.Lock()
}

func (m *spinMutex) Unlock() { m.mu.Unlock() }
