package machine

import (
	"github.com/stintgo/stint/internal/shrink"
	"github.com/stintgo/stint/queue"
)

// groups is the FIFO groups of one queue that have unfinished tasks. Only the first task
// of a group may start. groups changes the state of no task: it returns the task that the
// caller has to hold or to release. The caller of each method holds the lock of the
// machine.
type groups struct {
	byName map[string]*group
	peak   int // of byName, for shrink.Delete
}

// group is the unfinished tasks of one group.
type group struct {
	name    string
	byAge   heap[*task] // by Seq
	running *task       // nil if no task of the group runs
}

// first returns the running task, or else the oldest one: an older task that is retried
// waits until the running one has ended.
func (g *group) first() *task {
	if g.running != nil {
		return g.running
	}
	first, _ := g.byAge.first()
	return first.of
}

// join adds t, whose age is seq, to a group. If t becomes the first task of the group,
// and the task that was first is Waiting, join returns that task: the caller has to
// hold it.
func (s *groups) join(t *task, name string, seq uint64) (hold *task) {
	g := s.byName[name]
	if g == nil {
		g = &group{name: name, byAge: heap[*task]{index: indexInGroup}}
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

// leave removes a finished task from its group. If t was the first task of the group,
// leave returns the one that is first now, or nil if the group is empty.
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
