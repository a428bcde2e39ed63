package reference

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// Tasks is the tasks that there are, in the order of their submission.
type Tasks struct {
	all       []*Task
	submitted uint64 // tasks that were ever added

	// forgotten is the tasks that retention has removed, for their Uniques.
	forgotten []*Task
}

// Clone returns a copy whose tasks can go through transitions of their own.
func (ts *Tasks) Clone() *Tasks {
	own := &Tasks{submitted: ts.submitted}
	for _, t := range ts.all {
		own.all = append(own.all, t.Clone())
	}
	for _, t := range ts.forgotten {
		own.forgotten = append(own.forgotten, t.Clone())
	}
	return own
}

// Get returns the task with an ID, nil if there is none.
func (ts *Tasks) Get(id queue.ID) *Task {
	for _, t := range ts.all {
		if t.ID == id {
			return t
		}
	}
	return nil
}

// Add adds new tasks.
func (ts *Tasks) Add(fresh ...*Task) {
	ts.all = append(ts.all, fresh...)
	ts.submitted += uint64(len(fresh))
}

// Forget removes a task. After a removal by retention, and not by a command, its Unique
// is answered for the rest of its time.
func (ts *Tasks) Forget(t *Task, retention bool) {
	ts.all = slices.DeleteFunc(ts.all, func(other *Task) bool { return other == t })
	if retention {
		ts.forgotten = append(ts.forgotten, t)
	}
}

// SetBack moves times of all tasks back; see [Task.SetBack]. A task stays later than its
// predecessors.
func (ts *Tasks) SetBack(from time.Time, back time.Duration) {
	for _, t := range ts.forgotten {
		t.SetBack(from, back, time.Time{})
	}
	byID := func(a, b *Task) int { return bytes.Compare(a.ID[:], b.ID[:]) }
	for _, t := range slices.SortedFunc(slices.Values(ts.all), byID) {
		var earliest time.Time
		for _, id := range slices.Concat(t.After, t.AfterAny) {
			if before := ts.Get(id); before != nil && before.Seq < t.Seq && !before.Submitted.After(from) {
				earliest = later(earliest, before.Submitted)
			}
		}
		t.SetBack(from, back, earliest)
	}
}

// latest returns the latest time that the tasks keep.
func (ts *Tasks) latest() (at time.Time) {
	for _, t := range ts.all {
		at = later(at, t.Changed)
	}
	for _, t := range ts.forgotten {
		at = later(at, t.Submitted)
	}
	return at
}

// same returns the task that a new one repeats, or whose Unique it has, among the tasks,
// those that are about to be added, and those whose Unique outlives them.
func (ts *Tasks) same(now time.Time, t *Task, fresh []*Task) (id queue.ID, ok bool) {
	all := slices.Concat(ts.all, fresh)
	for _, other := range all {
		if other.ID == t.ID {
			return other.ID, true
		}
	}
	for _, other := range all {
		if t.Unique != "" && other.Unique == t.Unique && other.Queue == t.Queue {
			return other.ID, true
		}
	}
	for _, other := range ts.forgotten {
		if t.Unique != "" && t.Unique == other.Unique && t.Queue == other.Queue && other.uniqueUntil().After(now) {
			return other.ID, true
		}
	}
	return queue.ID{}, false
}

// Poison returns a task with the same work as t that is dead because it crashed its
// workers, nil if there is none.
func (ts *Tasks) Poison(t *Task) *Task {
	for _, other := range ts.all {
		if other.Poisonous() && other.Kind == t.Kind && bytes.Equal(other.Payload, t.Payload) {
			return other
		}
	}
	return nil
}

// Unfinished counts the unfinished tasks of a queue.
func (ts *Tasks) Unfinished(name string) (n int) {
	for _, t := range ts.all {
		if t.Queue == name && !t.State.Finished() {
			n++
		}
	}
	return n
}

// running returns the running tasks of a queue, or of all queues if the name is "", and of
// a key if one is given.
func (ts *Tasks) running(name string, key *string) (all []*Task) {
	for _, t := range ts.all {
		if t.State == queue.Running && (name == "" || t.Queue == name) && (key == nil || t.Key == *key) {
			all = append(all, t)
		}
	}
	return all
}

// runningByQueue counts the running tasks of the holdersMost queues that have the most, and of a
// key if one is given.
func (ts *Tasks) runningByQueue(key *string) map[string]int {
	running := make(map[string]int)
	for _, t := range ts.running("", key) {
		running[t.Queue]++
	}
	names := slices.SortedFunc(maps.Keys(running), func(a, b string) int {
		return cmp.Or(cmp.Compare(running[b], running[a]), cmp.Compare(a, b))
	})
	for _, name := range names[min(len(names), holdersMost):] {
		delete(running, name)
	}
	return running
}

// runningSuspects returns the suspects of a queue that run.
func (ts *Tasks) runningSuspects(name string) (ids []queue.ID) {
	for _, t := range ts.running(name, nil) {
		if t.Suspected() {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// local returns the running tasks whose leases end with the store.
func (ts *Tasks) local() (all []*Task) {
	for _, t := range ts.running("", nil) {
		if t.remote == 0 {
			all = append(all, t)
		}
	}
	return all
}
