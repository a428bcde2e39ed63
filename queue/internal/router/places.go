package router

import (
	"sync"

	"github.com/stintgo/stint/queue"
)

// placesMost is how many places are remembered at least, and half of how many at most. A
// place takes about 50 bytes.
const placesMost = 1 << 16

// places remembers the groups of tasks and batches. What it has forgotten is found again by
// asking all groups. The zero value is ready to use, and safe for concurrent use.
type places struct {
	mu         sync.Mutex // guards the fields below
	young, old map[queue.ID]int
}

// put remembers the group of an ID.
func (p *places) put(id queue.ID, group int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.putLocked(id, group)
}

func (p *places) putLocked(id queue.ID, group int) {
	if p.young == nil || len(p.young) >= placesMost {
		p.old, p.young = p.young, make(map[queue.ID]int)
	}
	p.young[id] = group
}

// of returns the group of an ID, if it is remembered.
func (p *places) of(id queue.ID) (group int, known bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if group, known = p.young[id]; known {
		return group, true
	}
	if group, known = p.old[id]; known {
		p.putLocked(id, group)
	}
	return group, known
}
