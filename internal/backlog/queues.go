package backlog

import "github.com/stintgo/stint/internal/shrink"

// queues is a binary min-heap of queues that know their index.
type queues[T any] []*queue[T]

func (h *queues[T]) insert(q *queue[T]) {
	q.pos = len(*h)
	if *h = append(*h, q); q.pos > 0 {
		h.up(q.pos)
	}
}

func (h *queues[T]) remove(q *queue[T]) {
	i, last := q.pos, len(*h)-1
	moved := (*h)[last]
	*h = shrink.Pop(*h)
	if moved != q {
		(*h)[i], moved.pos = moved, i
		h.fix(i)
	}
	q.pos = nowhere
}

// fix restores the order after the queue at i has changed.
func (h queues[T]) fix(i int) {
	if len(h) > 1 && !h.down(i) {
		h.up(i)
	}
}

func (h queues[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h queues[T]) down(i int) (moved bool) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].before(h[least]) {
				least = child
			}
		}
		if least == i {
			return moved
		}
		h.swap(i, least)
		i, moved = least, true
	}
}

func (h queues[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}
