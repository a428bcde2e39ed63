package queue

import (
	"fmt"
	"slices"
)

// checkCircles refuses tasks of one call that would wait for each other for ever:
// one that comes after a batch that has a task, or will have one, which in turn
// waits for it. Among tasks alone there are no circles, because each comes After
// those that are there. What is submitted with different calls is not looked at:
// a task added to a batch can wait for what waits for that batch; [Queue.Why]
// names what each of them waits for.
func checkCircles(tasks []NewTask) error {
	batches := make(map[ID]int) // index of those that a task waits for
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
	for i := range tasks {
		t := &tasks[i]
		index[t.ID] = i
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
	if i := g.circle(); i >= 0 {
		return fmt.Errorf("%w: task %d, of kind %q, would never start: it waits for tasks that wait for each other, "+
			"one of them after a batch", ErrInvalid, i, tasks[i].Kind)
	}
	return nil
}

// blocking says what waits for what: tasks, and behind them batches.
type blocking struct {
	blockers []int   // how many others each waits for
	after    [][]int // those that wait for each
}

func newBlocking(n int) blocking { return blocking{make([]int, n), make([][]int, n)} }

func (w *blocking) add(i, before int) {
	w.blockers[i]++
	w.after[before] = append(w.after[before], i)
}

// circle takes away whatever waits for nothing, until nothing is left, or what
// waits for itself: it returns the first of that, or -1. (Kahn, Topological
// sorting of large networks, CACM 1962.) It uses up what there is.
func (w *blocking) circle() int {
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
			return i // a task: they stand before the batches, and a batch is left only with one
		}
	}
	return -1
}
