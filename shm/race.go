//go:build race

package shm

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/stintgo/stint/shm/internal/arena"
)

// The race detector tracks the heap, but not mapped memory: there it sees
// that two goroutines take turns, but not that one happens before the other. So the
// order is announced on a word of the heap that represents the slot, the same
// for all regions of the process that map it.

type raceKey struct {
	file        arena.Identity
	limit, slot int
}

var raceOrder sync.Map //nolint:gochecknoglobals // a process has one detector

func raceWord(s *Slots, slot int) unsafe.Pointer {
	key := raceKey{s.region.arena.File.Identity, s.limit, slot}
	word, _ := raceOrder.LoadOrStore(key, new(uint64))
	return unsafe.Pointer(word.(*uint64)) //nolint:forcetypeassert // nothing else is stored
}

func raceAcquire(s *Slots, slot int) { runtime.RaceAcquire(raceWord(s, slot)) }

func raceRelease(s *Slots, slot int) { runtime.RaceReleaseMerge(raceWord(s, slot)) }
