package record

import "errors"

// Errors of bytes that cannot be decoded.
var (
	// ErrCorrupt: the bytes are not a row, or the row is damaged or truncated. The
	// message has the field and the offset in bytes.
	ErrCorrupt = errors.New("queue: corrupt row")
	// ErrVersion: the row has a version that this program does not know. A newer program
	// wrote it.
	ErrVersion = errors.New("queue: a row of a newer program")
)
