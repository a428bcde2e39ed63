package router

import (
	"sync"

	"github.com/stintgo/stint/queue"
)

// groupCacheMost is the minimum number of IDs that a full groupCache has; twice as many are the
// maximum. An ID takes about 50 bytes.
const groupCacheMost = 1 << 16

// groupCache has the groups of recent tasks or batches, by ID. The group of another ID is found by
// asking all groups. The zero value is ready to use, and safe for concurrent use.
type groupCache struct {
	mu         sync.Mutex // guards the fields below
	young, old map[queue.ID]int
}

// put remembers the group of an ID.
func (c *groupCache) put(id queue.ID, group int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.putLocked(id, group)
}

func (c *groupCache) putLocked(id queue.ID, group int) {
	if c.young == nil || len(c.young) >= groupCacheMost {
		c.old, c.young = c.young, make(map[queue.ID]int)
	}
	c.young[id] = group
}

// of returns the group of an ID, if it is remembered.
func (c *groupCache) of(id queue.ID) (group int, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if group, known = c.young[id]; known {
		return group, true
	}
	if group, known = c.old[id]; known {
		c.putLocked(id, group)
	}
	return group, known
}

// split divides the indexes of some items by the groups that are known to have them.
func (c *groupCache) split(n int, id func(i int) queue.ID) (known map[int][]int, unknown []int) {
	known = make(map[int][]int)
	for i := range n {
		if g, ok := c.of(id(i)); ok {
			known[g] = append(known[g], i)
		} else {
			unknown = append(unknown, i)
		}
	}
	return known, unknown
}
