package machine //nolint:testpackage // the lists alone, against slices

import (
	"cmp"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
)

// The size of a task in memory is that of docs/design/queue.md, for each of ten million.
func TestSizeOfATask(t *testing.T) {
	if size := unsafe.Sizeof(task{}); size != 104 {
		t.Errorf("a task takes %d bytes, want 104", size)
	}
}

// A list that is nearly in order, or not at all, is in order after sort, forwards and
// backwards.
func TestSortOfAList(t *testing.T) {
	rnd := seeded.Rand(t)
	for range 500 {
		s, ids, l := newTasks(), queue.IDs{}, taskList{}
		var want []uint32
		odd := rnd.IntN(101) // in a hundred, tasks that are out of order
		for i := range rnd.IntN(200) {
			task := s.add(ids.New(time.Unix(1e9, 0)))
			if task.at = int64(i / 2); rnd.IntN(100) < odd {
				task.at = rnd.Int64N(300)
			}
			s.append(&l, task)
			want = append(want, task.no())
		}
		s.sort(&l)
		byTime := func(a, b uint32) int { return cmp.Compare(s.at(a).at, s.at(b).at) }
		up, down := []uint32(nil), []uint32(nil)
		for no := l.first; no != 0; no = s.at(no).next {
			up = append(up, no)
		}
		for no := l.last; no != 0; no = s.at(no).prev {
			down = append(down, no)
		}
		slices.Reverse(down)
		if !slices.IsSortedFunc(up, byTime) || !slices.Equal(up, down) || l.n != len(want) {
			t.Fatalf("forwards %v, backwards %v, %d", up, down, l.n)
		}
		slices.Sort(up)
		if slices.Sort(want); !slices.Equal(up, want) {
			t.Fatalf("there are %v, want %v", up, want)
		}
	}
}
