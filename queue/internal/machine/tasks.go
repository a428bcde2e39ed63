package machine

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/stintgo/stint/queue"
)

// tasks is the set of all tasks, by number, by ID, and in the order of their IDs. They
// are allocated in slabs: the backlog keeps pointers to them, so they must not move,
// and slabs are few objects for the garbage collector. It does not depend on the states
// of tasks. The caller of each method holds the lock of the machine.
type tasks struct {
	slabs []*[slabSize]task
	used  uint32 // the largest number that has been in use
	free  uint32 // the first free number, linked by task.next; 0: none is free
	index index
	ids   ascending
}

const (
	slabBits = 12
	slabSize = 1 << slabBits
)

func newTasks() *tasks {
	s := new(tasks)
	id := func(no uint32) *queue.ID { return &s.at(no).id }
	s.index, s.ids = index{seed: maphash.MakeSeed(), id: id}, ascending{id: id}
	return s
}

// at returns the task with a number. Numbers begin with 1.
func (s *tasks) at(no uint32) *task { return &s.slabs[no>>slabBits][no&(slabSize-1)] }

// get returns the task with an ID, nil if there is none.
func (s *tasks) get(id queue.ID) *task {
	if no := s.index.get(&id); no != 0 {
		return s.at(no)
	}
	return nil
}

// add adds a task with an ID that no task has.
func (s *tasks) add(id queue.ID) *task {
	t := s.addUnindexed(id)
	s.index.add(&t.id, t.no())
	return t
}

// addUnindexed is add for many tasks at a time, in the order of their IDs. get finds them
// only after indexAll.
func (s *tasks) addUnindexed(id queue.ID) *task {
	no := s.free
	if no == 0 {
		s.used++
		no = s.used
		if int(no>>slabBits) == len(s.slabs) {
			s.slabs = append(s.slabs, new([slabSize]task))
		}
	}
	t := s.at(no)
	s.free, t.next = t.next, 0
	t.entry.Value, t.id = no, id
	s.ids.add(no)
	return t
}

// indexAll indexes all tasks that addUnindexed has added. No other task may have been
// added or removed.
func (s *tasks) indexAll() { s.index.fill(s.used) }

// remove removes a task. The caller must not use t afterwards.
func (s *tasks) remove(t *task) {
	s.index.remove(&t.id)
	s.ids.remove(t.no())
	no := t.no()
	*t = task{next: s.free}
	s.free = no
}

// taskList is a linked list of tasks in the order in which they entered their state. A
// task is in at most one list.
type taskList struct {
	first, last uint32 // numbers; 0 if the list is empty
	n           int
}

// append puts a task at the end of a list.
func (s *tasks) append(l *taskList, t *task) {
	t.prev, t.next = l.last, 0
	if l.last != 0 {
		s.at(l.last).next = t.no()
	} else {
		l.first = t.no()
	}
	l.last = t.no()
	l.n++
}

// unlist removes a task from its list.
func (s *tasks) unlist(l *taskList, t *task) {
	if t.prev != 0 {
		s.at(t.prev).next = t.next
	} else {
		l.first = t.next
	}
	if t.next != 0 {
		s.at(t.next).prev = t.prev
	} else {
		l.last = t.prev
	}
	t.prev, t.next = 0, 0
	l.n--
}

// sort sorts a list by the times of its tasks. The list is nearly sorted: only tasks that
// have entered their state again since their submission are too early in it. So sort
// removes these and inserts them again.
func (s *tasks) sort(l *taskList) {
	moved := s.tooEarly(l)
	slices.SortFunc(moved, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(s.at(a).at, s.at(b).at), cmp.Compare(a, b))
	})
	before := l.last
	for _, no := range slices.Backward(moved) {
		t := s.at(no)
		for before != 0 && s.at(before).at > t.at {
			before = s.at(before).prev
		}
		s.insert(l, before, t)
	}
}

// tooEarly removes and returns the tasks of a list that precede a task with an earlier
// time.
func (s *tasks) tooEarly(l *taskList) (early []uint32) {
	for no := l.first; no != 0; no = s.at(no).next {
		t := s.at(no)
		for t.prev != 0 && s.at(t.prev).at > t.at {
			early = append(early, t.prev)
			s.unlist(l, s.at(t.prev))
		}
	}
	return early
}

// restore inserts a task by its time into a list that it has recently left. The oldest
// tasks are claimed first, so restore searches from the front, for at most 1024 elements.
func (s *tasks) restore(l *taskList, t *task) {
	const most = 1024
	before, next := uint32(0), l.first
	for n := 0; n < most && next != 0 && s.at(next).at <= t.at; n++ {
		before, next = next, s.at(next).next
	}
	s.insert(l, before, t)
}

// insert inserts a task into a list after the task with the number before, or at the
// front if before is 0.
func (s *tasks) insert(l *taskList, before uint32, t *task) {
	after := l.first
	if before == 0 {
		l.first = t.no()
	} else {
		after = s.at(before).next
		s.at(before).next = t.no()
	}
	if after == 0 {
		l.last = t.no()
	} else {
		s.at(after).prev = t.no()
	}
	t.prev, t.next = before, after
	l.n++
}
