package machine

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/stintgo/stint/queue"
)

// tasks are all tasks that the store remembers. They lie in slabs, because the
// order keeps pointers to them: they never move, and ten million are not as many
// objects for the garbage collector.
type tasks struct {
	slabs []*[slabSize]task
	used  uint32 // the largest number that there has been
	free  uint32 // one that is not in use, whose next is the next such one
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

// at returns the task of a number, which begin with 1.
func (s *tasks) at(no uint32) *task { return &s.slabs[no>>slabBits][no&(slabSize-1)] }

// get returns the task of an ID, nil if there is none.
func (s *tasks) get(id queue.ID) *task {
	if no := s.index.get(&id); no != 0 {
		return s.at(no)
	}
	return nil
}

// add makes a task of an ID that there is none of.
func (s *tasks) add(id queue.ID) *task {
	t := s.addUnindexed(id)
	s.index.add(&t.id, t.no())
	return t
}

// addUnindexed is add for many at a time, in the order of their IDs. None of them is
// found before indexAll.
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
	t.place.Value, t.id = no, id
	s.ids.add(no)
	return t
}

// indexAll has all tasks be found, when none was removed or is found yet.
func (s *tasks) indexAll() { s.index.fill(s.used) }

// remove forgets a task. It is not to be used any more.
func (s *tasks) remove(t *task) {
	s.index.remove(&t.id)
	s.ids.remove(t.no())
	no := t.no()
	*t = task{next: s.free}
	s.free = no
}

// roll is some tasks in the order in which they became what they are. A task is
// in one at most.
type taskList struct {
	first, last uint32 // numbers; 0 if it is empty
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

// unlist takes a task out of its list.
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

// sort puts a list into the order of its tasks' times. It nearly is: tasks wait in the
// order of their submissions, but for those that have come back since, which are too
// far in front. So those are taken out, and put in again behind.
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

// tooEarly takes those tasks out of a list that stand before one with an earlier time.
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

// restore puts a task into a list that it has just been taken from, by its time. The
// oldest are taken first, so its place is looked for among so many at the beginning.
func (s *tasks) restore(l *taskList, t *task) {
	const most = 1024
	before, next := uint32(0), l.first
	for n := 0; n < most && next != 0 && s.at(next).at <= t.at; n++ {
		before, next = next, s.at(next).next
	}
	s.insert(l, before, t)
}

// insert puts a task into a list behind one, or first of all if that is 0.
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
