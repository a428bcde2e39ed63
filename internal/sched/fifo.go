package sched

import "sync"

// item is one piece of work without a key. A call, or a function of a group, that needs
// one slot is an item without an entry; any other work has an entry, which is the item's
// job.
type item struct {
	job          Job
	cancellation *cancellation // removes it when its context ends; names the group of a group's function
	since        int64         // when it arrived, by the engine's clock
}

// fifo is a queue of items. It is a list of chunks, so that a long one is never copied to
// grow, and its memory is released as it gets shorter. An item has a place, a number that
// stays the same while the item waits, by which it is found and removed in O(1).
type fifo struct {
	chunks []*chunk // places base·chunkLen and up; nil for a chunk whose items were all removed
	base   uint64
	head   uint64 // place of the first item
	tail   uint64 // place of the next item to be put
	n      int
}

const chunkLen = 128

// chunk is some 4 KiB.
type chunk struct {
	items [chunkLen]item
	dead  int // removed items that the head has not passed
}

// put appends an item and returns its place.
func (f *fifo) put(it item, spare *spares) (place uint64) {
	if f.tail%chunkLen == 0 {
		f.grow(spare)
	}
	place = f.tail
	f.chunks[len(f.chunks)-1].items[place%chunkLen] = it
	f.tail++
	f.n++
	return place
}

func (f *fifo) grow(spare *spares) {
	if last := len(f.chunks) - 1; last > 0 && f.chunks[last].dead == chunkLen {
		spare.put(f.chunks[last])
		f.chunks[last] = nil
	}
	f.chunks = append(f.chunks, spare.get())
}

// first returns the first item. The fifo must not be empty.
func (f *fifo) first() *item { return &f.chunks[0].items[f.head%chunkLen] }

// drop removes the first item.
func (f *fifo) drop(spare *spares) {
	*f.first() = item{}
	f.n--
	f.head++
	if f.n == 0 {
		f.clear(spare)
		return
	}
	for {
		if f.head%chunkLen == 0 {
			f.pass(spare)
		}
		if f.first().job != nil {
			return
		}
		f.chunks[0].dead--
		f.head++
	}
}

// pass releases the first chunk, and empty ones behind it.
func (f *fifo) pass(spare *spares) {
	spare.put(f.chunks[0])
	for f.chunks[0], f.chunks = nil, f.chunks[1:]; ; f.chunks = f.chunks[1:] {
		f.base++
		if f.chunks[0] != nil {
			return
		}
		f.head += chunkLen
	}
}

// clear releases all chunks of an empty fifo, except for the last one if it has room.
func (f *fifo) clear(spare *spares) {
	keep := 0
	if f.tail%chunkLen != 0 {
		keep = 1
	}
	cut := len(f.chunks) - keep
	for i, c := range f.chunks[:cut] {
		if c != nil {
			spare.put(c)
		}
		f.chunks[i] = nil
	}
	f.chunks = f.chunks[cut:]
	if keep == 1 {
		f.chunks[0].dead = 0
	}
	f.base, f.head = f.tail/chunkLen, f.tail
}

// at returns the item at a place, or nil if it has left.
func (f *fifo) at(place uint64) *item {
	if place < f.head || place >= f.tail {
		return nil
	}
	c := f.chunks[place/chunkLen-f.base]
	if c == nil || c.items[place%chunkLen].job == nil {
		return nil
	}
	return &c.items[place%chunkLen]
}

// remove removes the item at a place.
func (f *fifo) remove(place uint64, spare *spares) {
	if place == f.head {
		f.drop(spare)
		return
	}
	i := place/chunkLen - f.base
	c := f.chunks[i]
	c.items[place%chunkLen] = item{}
	c.dead++
	f.n--
	if c.dead == chunkLen && int(i) < len(f.chunks)-1 { // not the first, where the head is
		spare.put(c)
		f.chunks[i] = nil
	}
}

// next returns the place of the first item at or behind place, and false if there is
// none.
func (f *fifo) next(place uint64) (uint64, bool) {
	for place = max(place, f.head); place < f.tail; {
		c := f.chunks[place/chunkLen-f.base]
		switch {
		case c == nil:
			place += chunkLen - place%chunkLen
		case c.items[place%chunkLen].job == nil:
			place++
		default:
			return place, true
		}
	}
	return 0, false
}

// ahead counts the items before a place.
func (f *fifo) ahead(place uint64) (n int) {
	last := place/chunkLen - f.base
	for _, c := range f.chunks[:last] {
		if c != nil {
			n += chunkLen - c.dead
		}
	}
	if last > 0 { // what the head has passed is not counted as dead
		n -= int(f.head % chunkLen)
	}
	c := f.chunks[last]
	from := uint64(0)
	if last == 0 {
		from = f.head % chunkLen
	}
	for i := from; i < place%chunkLen; i++ {
		if c.items[i].job != nil {
			n++
		}
	}
	return n
}

// spares are chunks for reuse, until the garbage collector takes them.
type spares struct{ pool sync.Pool }

func (s *spares) get() *chunk {
	if c, ok := s.pool.Get().(*chunk); ok {
		return c
	}
	return new(chunk)
}

// put keeps a chunk without items for reuse.
func (s *spares) put(c *chunk) {
	c.dead = 0
	s.pool.Put(c)
}
