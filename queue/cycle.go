package queue

import (
	"cmp"
	"fmt"
	"slices"
)

// checkCycles refuses tasks of one call that would wait for each other for ever: a task
// that comes after a batch, one of whose tasks waits for it, because it comes after it or is
// behind it in a group. Tasks alone have no cycles, because each waits for earlier ones. Tasks
// of different calls are not checked: a task added to a batch can wait for a task that waits
// for that batch. [Queue.Why] names what each of them waits for.
func checkCycles(tasks []NewTask) error {
	batches := make(map[ID]int) // indexes of the batches that tasks wait for
	for i := range tasks {
		if id := tasks[i].AfterBatch; !id.IsZero() {
			if _, ok := batches[id]; !ok {
				batches[id] = len(tasks) + len(batches)
			}
		}
	}
	if len(batches) == 0 {
		return nil
	}
	g := newBlocking(len(tasks) + len(batches))
	index := make(map[ID]int, len(tasks))
	last := make(map[[2]string]int) // by queue and group, the index of the last task so far
	for i := range tasks {
		t := &tasks[i]
		index[t.ID] = i
		if t.Group != "" {
			group := [2]string{cmp.Or(t.Queue, DefaultQueue), t.Group}
			if before, ok := last[group]; ok {
				g.add(i, before)
			}
			last[group] = i
		}
		if b, ok := batches[t.Batch]; ok {
			g.add(b, i)
		}
		if b, ok := batches[t.AfterBatch]; ok {
			g.add(i, b)
		}
		for _, id := range slices.Concat(t.After, t.AfterAny) {
			if before, ok := index[id]; ok {
				g.add(i, before)
			}
		}
	}
	if i := g.cycle(); i >= 0 {
		return fmt.Errorf("%w: task %d, of kind %q, would never start: it waits for tasks that wait for each other, "+
			"one of them after a batch", ErrInvalid, i, tasks[i].Kind)
	}
	return nil
}

// blocking is a graph of tasks, followed by batches, and what they wait for.
type blocking struct {
	blockers []int   // by vertex, the number of vertices that it waits for
	after    [][]int // by vertex, the vertices that wait for it
}

func newBlocking(n int) blocking { return blocking{make([]int, n), make([][]int, n)} }

func (w *blocking) add(i, before int) {
	w.blockers[i]++
	w.after[before] = append(w.after[before], i)
}

// cycle removes the vertices that wait for nothing until none is left (Kahn, "Topological
// sorting of large networks", CACM 1962). It returns the first remaining vertex, which is
// in a cycle or waits for one, or -1. It destroys the graph.
func (w *blocking) cycle() int {
	var free []int
	for i, n := range w.blockers {
		if n == 0 {
			free = append(free, i)
		}
	}
	for len(free) > 0 {
		i := free[len(free)-1]
		free = free[:len(free)-1]
		for _, next := range w.after[i] {
			if w.blockers[next]--; w.blockers[next] == 0 {
				free = append(free, next)
			}
		}
	}
	for i, n := range w.blockers {
		if n > 0 {
			return i // a task: tasks precede batches, and a batch remains only with one of its tasks
		}
	}
	return -1
}
