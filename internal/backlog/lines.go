package backlog

import "github.com/stintgo/stint/internal/shrink"

// lines is a binary min-heap of lines that know their index.
type lines[T any] []*line[T]

func (h *lines[T]) insert(l *line[T]) {
	l.pos = len(*h)
	if *h = append(*h, l); l.pos > 0 {
		h.up(l.pos)
	}
}

func (h *lines[T]) remove(l *line[T]) {
	i, last := l.pos, len(*h)-1
	moved := (*h)[last]
	*h = shrink.Pop(*h)
	if moved != l {
		(*h)[i], moved.pos = moved, i
		h.fix(i)
	}
	l.pos = nowhere
}

// fix restores the order after the line at i has changed.
func (h lines[T]) fix(i int) {
	if len(h) > 1 && !h.down(i) {
		h.up(i)
	}
}

func (h lines[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h lines[T]) down(i int) (moved bool) {
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

func (h lines[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}
