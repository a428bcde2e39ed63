package lease

// Rows are the rows of a lease log in which a row has the entries of several slots. Rows are
// numbered from 1. A row is free when the slots of all its entries have been freed, and is then
// written with other entries. The zero value has no rows. The caller serializes the calls.
type Rows struct {
	of    []int // by slot: the row that has its entry, or 0
	taken []int // by row: the number of slots whose entries it has; [0] is not used
	free  freeSlots
}

// Append appends a row with the entries of slots, which is free if there are none.
func (r *Rows) Append(slots ...int) (row int) {
	if r.taken == nil {
		r.taken = make([]int, 1)
	}
	row = len(r.taken)
	r.taken = append(r.taken, 0)
	if len(slots) == 0 {
		r.free.add(row)
	}
	r.put(row, slots)
	return row
}

// Take takes the lowest free row for the entries of slots, of which there is at least one. If no
// row is free, it appends one.
func (r *Rows) Take(slots ...int) (row int) {
	row, ok := r.free.take()
	if !ok {
		return r.Append(slots...)
	}
	r.put(row, slots)
	return row
}

func (r *Rows) put(row int, slots []int) {
	for _, slot := range slots {
		for slot >= len(r.of) {
			r.of = append(r.of, 0)
		}
		r.Free(slot)
		r.of[slot] = row
		r.taken[row]++
	}
}

// Free frees a slot. A slot whose entry is in no row is ignored.
func (r *Rows) Free(slot int) {
	if slot >= len(r.of) || r.of[slot] == 0 {
		return
	}
	row := r.of[slot]
	r.of[slot] = 0
	if r.taken[row]--; r.taken[row] == 0 {
		r.free.add(row)
	}
}
