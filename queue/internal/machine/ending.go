package machine

import (
	"encoding/binary"
	"strconv"
	"strings"

	"github.com/stintgo/stint/queue"
)

// ending matches IDs by their last hexadecimal digits: the bits under a mask. The zero
// value matches all IDs.
type ending struct {
	bits, mask [2]uint64 // of the first and the second eight bytes of an ID
	impossible bool      // no ID can match, as the text is too long or no lower-case hexadecimal
}

const digitsInWord = 16

func parseEnding(text string) (e ending) {
	if len(text) > 2*digitsInWord || strings.ToLower(text) != text {
		return ending{impossible: true}
	}
	for i := 1; i >= 0 && text != ""; i-- {
		word := text[max(len(text)-digitsInWord, 0):]
		text = text[:len(text)-len(word)]
		bits, err := strconv.ParseUint(word, 16, 64)
		if err != nil {
			return ending{impossible: true}
		}
		e.bits[i], e.mask[i] = bits, ^uint64(0)>>(64-4*len(word))
	}
	return e
}

// of reports whether an ID matches.
func (e *ending) of(id *queue.ID) bool {
	return binary.BigEndian.Uint64(id[8:])&e.mask[1] == e.bits[1] &&
		binary.BigEndian.Uint64(id[:8])&e.mask[0] == e.bits[0] && !e.impossible
}
