package lease

import "math/bits"

// freeSlots is a set of numbers from 0: the slots that are free. take returns the lowest,
// so that the slots of one claim are neighbours and the file stays short. The zero value is
// empty.
type freeSlots struct {
	words []uint64 // a bit for each slot; set if the slot is free
	from  int      // words before this one are 0
}

// add adds a slot.
func (f *freeSlots) add(slot int) {
	word := slot / 64
	for word >= len(f.words) {
		f.words = append(f.words, 0)
	}
	f.words[word] |= 1 << (slot % 64)
	f.from = min(f.from, word)
}

// take removes the lowest slot, and reports whether there was one.
func (f *freeSlots) take() (slot int, ok bool) {
	for ; f.from < len(f.words); f.from++ {
		if word := &f.words[f.from]; *word != 0 {
			bit := bits.TrailingZeros64(*word)
			*word &^= 1 << bit
			return f.from*64 + bit, true
		}
	}
	return 0, false
}
