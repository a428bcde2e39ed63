package machine

import (
	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
)

// groups is the FIFO groups of one queue that have unfinished tasks. It changes no task:
// it returns tasks that have to be held or may go on. The caller of each method holds the
// lock of the machine.
type groups struct {
	byName map[string]*group
	peak   int // of byName, as shrink.Delete has it
}

// group is the unfinished tasks of one group, of which only the first may start.
type group struct {
	name    string
	byAge   heap[*task]
	running *task
}

// first returns the task that runs, or else the oldest: an older task that was retried
// waits for the one that runs.
func (g *group) first() *task {
	if g.running != nil {
		return g.running
	}
	first, _ := g.byAge.first()
	return first.of
}

// join adds a task of an age to its group. It returns the task that was Waiting and has
// to be held from now on, because t comes first; nil if there is none.
func (s *groups) join(t *task, name string, seq uint64) (hold *task) {
	g := s.byName[name]
	if g == nil {
		g = &group{name: name, byAge: heap[*task]{place: placeInGroup}}
		s.byName[name] = g
	}
	var first *task
	if len(g.byAge.all) > 0 {
		first = g.first()
	}
	t.more().group = g
	g.byAge.set(t, int64(seq))
	if t.state == queue.Running {
		g.running = t
	}
	if first != nil && g.first() == t && first.state == queue.Waiting {
		return first
	}
	return nil
}

// leave removes a finished task from its group. If t came first it returns the task that
// comes first now; else nil.
func (s *groups) leave(t *task) (next *task) {
	g := t.group
	first := g.first() == t
	g.byAge.remove(t)
	t.group = nil
	if g.running == t {
		g.running = nil
	}
	if len(g.byAge.all) == 0 {
		shrink.Delete(&s.byName, &s.peak, g.name)
	} else if first {
		return g.first()
	}
	return nil
}
