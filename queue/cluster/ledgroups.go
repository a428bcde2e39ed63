package cluster

import (
	"sync"
	"sync/atomic"
	"time"
)

// moveEvery is about how often a process that leads too many groups hands one over, and
// the shortest time between two groups that a process accepts. It is longer than
// enrollEvery, so that the counts that a leader knows are those after the last move.
const moveEvery = 5 * time.Second

// ledGroups are the groups that a process leads. A process hands a group over only to one that
// leads at least two fewer, which checks that itself. So each move makes the sum of the
// squares of the numbers smaller, and groups never move in circles. A nil *ledGroups is that of a
// node without groups. It is safe for concurrent use.
type ledGroups struct {
	every time.Duration // moveEvery, but for tests
	leads atomic.Int32

	mu       sync.Mutex // guards the fields below
	accepted time.Time  // when the last invitation was accepted; zero if none was
}

// replaced counts the lead of a node whose view has changed: whether the node led before, and leads now.
func (g *ledGroups) replaced(led, leads bool) {
	if g == nil {
		return
	}
	if led {
		g.leads.Add(-1)
	}
	if leads {
		g.leads.Add(1)
	}
}

// count returns how many groups the process leads.
func (g *ledGroups) count() int {
	if g == nil {
		return 0
	}
	return int(g.leads.Load())
}

// accept reports whether the process takes a group over from one whose number of groups is leads.
// After that it accepts no other for a while, until the count has changed.
func (g *ledGroups) accept(leads int, now time.Time) bool {
	if g == nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count()+2 > leads || !g.accepted.IsZero() && now.Sub(g.accepted) < g.every {
		return false
	}
	g.accepted = now
	return true
}
