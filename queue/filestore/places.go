package filestore

import "math/bits"

// places are those that are free, numbers from 0. The lowest is taken first, so what
// is taken together lies together, and at the beginning. The zero value has none.
type places struct {
	words []uint64 // a bit for each, which is set if it is free
	from  int      // the words before this one have none
}

// give puts a place in.
func (p *places) give(place int) {
	word := place / 64
	for word >= len(p.words) {
		p.words = append(p.words, 0)
	}
	p.words[word] |= 1 << (place % 64)
	p.from = min(p.from, word)
}

// take takes the lowest place out, and reports whether there was one.
func (p *places) take() (place int, ok bool) {
	for ; p.from < len(p.words); p.from++ {
		if word := &p.words[p.from]; *word != 0 {
			bit := bits.TrailingZeros64(*word)
			*word &^= 1 << bit
			return p.from*64 + bit, true
		}
	}
	return 0, false
}
