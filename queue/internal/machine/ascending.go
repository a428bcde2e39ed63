package machine

import (
	"bytes"
	"slices"
	"sort"

	"github.com/stintgo/stint/queue"
)

// ascending is a sorted list of the numbers of tasks in the order of their IDs. It is
// divided into leaves of up to leafSize numbers, and takes four to eight bytes for each
// task. IDs begin with a time, so nearly all tasks are added at the end, and most are
// removed at the beginning. The caller of each method holds the lock of the machine.
type ascending struct {
	id     func(no uint32) *queue.ID
	leaves [][]uint32 // none is empty
}

const leafSize = 512

// locate returns the position of the first ID that is not less than id.
func (a *ascending) locate(id *queue.ID) (leaf, i int) {
	before := func(no uint32) bool { return bytes.Compare(a.id(no)[:], id[:]) < 0 }
	leaf = sort.Search(len(a.leaves), func(l int) bool { return !before(a.leaves[l][0]) })
	if leaf > 0 { // it may be in the leaf before, whose first ID is smaller
		last := a.leaves[leaf-1]
		i = sort.Search(len(last), func(i int) bool { return !before(last[i]) })
		if i < len(last) {
			return leaf - 1, i
		}
	}
	return leaf, 0
}

// add adds a number, which must not be in the list.
func (a *ascending) add(no uint32) {
	last := len(a.leaves) - 1
	if last >= 0 && bytes.Compare(a.id(a.leaves[last][len(a.leaves[last])-1])[:], a.id(no)[:]) < 0 {
		if len(a.leaves[last]) < leafSize {
			a.leaves[last] = append(a.leaves[last], no)
			return
		}
		last = -1
	}
	if last < 0 {
		a.leaves = append(a.leaves, []uint32{no})
		return
	}
	leaf, i := a.locate(a.id(no))
	full := slices.Insert(a.leaves[leaf], i, no)
	if a.leaves[leaf] = full; len(full) > leafSize {
		half := slices.Clone(full[leafSize/2:])
		a.leaves[leaf] = full[:leafSize/2]
		a.leaves = slices.Insert(a.leaves, leaf+1, half)
	}
}

// remove removes a number, which must be in the list.
func (a *ascending) remove(no uint32) {
	l, i := 0, 0
	if a.leaves[0][0] != no {
		l, i = a.locate(a.id(no))
	}
	if a.leaves[l] = slices.Delete(a.leaves[l], i, i+1); len(a.leaves[l]) == 0 {
		a.leaves = slices.Delete(a.leaves, l, l+1)
		return
	}
	a.merge(l)
	a.merge(l - 1)
}

// merge merges a leaf with the next one if both together are at most half a leaf.
// Otherwise a few numbers that stay for long would occupy a leaf each.
func (a *ascending) merge(l int) {
	if l < 0 || l+1 >= len(a.leaves) || len(a.leaves[l])+len(a.leaves[l+1]) > leafSize/2 {
		return
	}
	a.leaves[l] = append(a.leaves[l], a.leaves[l+1]...)
	a.leaves = slices.Delete(a.leaves, l+1, l+2)
}

// from calls do with the numbers of the IDs after the given one in the direction of the
// iteration, ascending or descending, until do returns false. If the ID is zero it begins
// at the start of that direction. It reports whether it reached the end.
func (a *ascending) from(behind queue.ID, down bool, do func(no uint32) bool) bool {
	if down {
		return a.below(behind, do)
	}
	l, i := 0, 0
	if !behind.IsZero() {
		l, i = a.locate(&behind)
		if l < len(a.leaves) && *a.id(a.leaves[l][i]) == behind {
			i++
		}
	}
	for ; l < len(a.leaves); l, i = l+1, 0 {
		for _, no := range a.leaves[l][i:] {
			if !do(no) {
				return false
			}
		}
	}
	return true
}

func (a *ascending) below(behind queue.ID, do func(no uint32) bool) bool {
	l, i := len(a.leaves), 0
	if !behind.IsZero() {
		l, i = a.locate(&behind)
	}
	for {
		for i--; i >= 0; i-- {
			if !do(a.leaves[l][i]) {
				return false
			}
		}
		if l--; l < 0 {
			return true
		}
		i = len(a.leaves[l])
	}
}
