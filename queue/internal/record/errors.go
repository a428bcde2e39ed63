package record

import "errors"

// What is wrong with bytes that are not a row.
var (
	// ErrCorrupt: the bytes are no row, or one that was damaged or cut short. The
	// message says in which field, and at which byte.
	ErrCorrupt = errors.New("queue: corrupt row")
	// ErrVersion: the row has a version that this program does not know. A newer
	// one has written it, and can read it.
	ErrVersion = errors.New("queue: a row of a newer program")
)
