package machine

import "github.com/stintgo/stint/internal/shrink"

// heap is a binary min-heap of elements by rank, which is a due time or an age. Each
// element stores its index, so that it can be removed.
type heap[T any] struct {
	all   []ranked[T]
	index func(T) *uint32 // where an element stores its index, from 1; 0: it is not in the heap
}

// ranked is an element of a heap with its rank, so that comparisons do not read the
// elements themselves, which are not in the processor's cache.
type ranked[T any] struct {
	rank int64
	of   T
}

// set adds an element with a rank, or changes its rank.
func (h *heap[T]) set(of T, rank int64) {
	at := h.index(of)
	if *at == 0 {
		h.all = append(h.all, ranked[T]{rank, of})
		*at = uint32(len(h.all))
	} else {
		h.all[*at-1].rank = rank
	}
	h.fix(int(*at))
}

// remove removes an element if it is in the heap.
func (h *heap[T]) remove(of T) {
	at := h.index(of)
	i, last := int(*at), len(h.all)
	if i == 0 {
		return
	}
	*at = 0
	moved := h.all[last-1]
	h.all = shrink.Pop(h.all)
	if i < last {
		h.put(i, moved)
		h.fix(i)
	}
}

// first returns the element with the smallest rank, and whether there is one.
func (h *heap[T]) first() (first ranked[T], ok bool) {
	if len(h.all) == 0 {
		return first, false
	}
	return h.all[0], true
}

// before calls do with all elements whose rank is at most limit, in no particular
// order. Its cost is linear in their number.
func (h *heap[T]) before(limit int64, do func(T)) { h.branch(1, limit, do) }

func (h *heap[T]) branch(i int, limit int64, do func(T)) {
	if i > len(h.all) || h.all[i-1].rank > limit {
		return
	}
	do(h.all[i-1].of)
	h.branch(2*i, limit, do)
	h.branch(2*i+1, limit, do)
}

func (h *heap[T]) put(i int, r ranked[T]) {
	h.all[i-1] = r
	*h.index(r.of) = uint32(i)
}

// fix restores the order of the heap after the rank of the element at index i has
// changed.
func (h *heap[T]) fix(i int) {
	r := h.all[i-1]
	for ; i > 1 && r.rank < h.all[i/2-1].rank; i /= 2 {
		h.put(i, h.all[i/2-1])
	}
	for {
		child := 2 * i
		if child < len(h.all) && h.all[child].rank < h.all[child-1].rank {
			child++
		}
		if child > len(h.all) || h.all[child-1].rank >= r.rank {
			break
		}
		h.put(i, h.all[child-1])
		i = child
	}
	h.put(i, r)
}
