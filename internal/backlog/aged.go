package backlog

import "github.com/stintgo/stint/internal/shrink"

// aged is the entries of a queue that came back when younger ones were queued
// already: a binary min-heap by ticket, of entries that know their place.
type aged[T any] []*Entry[T]

// put stores e at index i. Places count from 1, and 0 is that of an entry in a FIFO.
func (h aged[T]) put(i int, e *Entry[T]) {
	h[i], e.place = e, int32(i)+1
}

func (h *aged[T]) insert(e *Entry[T]) {
	*h = append(*h, e)
	h.up(len(*h)-1, e)
}

func (h *aged[T]) remove(e *Entry[T]) {
	i, last := int(e.place)-1, len(*h)-1
	moved := (*h)[last]
	*h = shrink.Pop(*h)
	e.place = 0
	if i == last {
		return
	}
	if i > 0 && moved.ticket < (*h)[(i-1)/2].ticket {
		h.up(i, moved)
	} else {
		h.down(i, moved)
	}
}

// up and down move e from the free index i to its place: towards the top, or away
// from it.
func (h aged[T]) up(i int, e *Entry[T]) {
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].ticket <= e.ticket {
			break
		}
		h.put(i, h[parent])
		i = parent
	}
	h.put(i, e)
}

func (h aged[T]) down(i int, e *Entry[T]) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].ticket < h[child].ticket {
			child++
		}
		if e.ticket <= h[child].ticket {
			break
		}
		h.put(i, h[child])
		i = child
	}
	h.put(i, e)
}

// olderThan counts the entries with a smaller ticket, at most.
func (h aged[T]) olderThan(ticket uint64) (n int) {
	if len(h) > maxSteps {
		return len(h)
	}
	for _, e := range h {
		if e.ticket < ticket {
			n++
		}
	}
	return n
}
