// Package arena is memory that the processes of a machine share: a file that all
// of them have mapped, with locks that end with their process, and a way to sleep
// until a word changes. It does not know what the words mean.
package arena

import (
	"errors"
	"fmt"
)

// Layout is what the file is made for. Processes with different layouts cannot
// share one.
type Layout struct {
	Words    int      // the number of 64-bit words
	Geometry []uint64 // what they are, at most geometryMax numbers
}

// Version is that of the file's header and of what its words mean. It changes
// when processes of the old version and the new one would misunderstand each
// other.
const Version = 1

// The header is a page: these words, and then the geometry. A file is ready when
// its magic is there, which is written last.
const (
	headMagic = iota
	headVersion
	headWords
	headBoot // and one more
	_
	headGeometry // its length, and then its numbers

	headerWords = 512
	geometryMax = headerWords - headGeometry - 1
	magic       = 0x0a6d68732d746e73 // "snt-shm\n"
)

var (
	// ErrMismatch says that the file is another version's, or was made for another
	// geometry. The message says which.
	ErrMismatch = errors.New("the region does not fit")

	// ErrNotOurs says that the file or its directory belongs to another user, or
	// lets other users in.
	ErrNotOurs = errors.New("the region is not safe from other users")
)

// fits compares the header with what is asked for.
func fits(header []uint64, layout Layout) error {
	if v := header[headVersion]; v != Version {
		return fmt.Errorf("%w: it is of version %d, this program knows version %d", ErrMismatch, v, Version)
	}
	n := min(header[headGeometry], geometryMax)
	has := header[headGeometry+1:][:n]
	if len(has) != len(layout.Geometry) {
		return fmt.Errorf("%w: its geometry is %d, not %d", ErrMismatch, has, layout.Geometry)
	}
	for i := range has {
		if has[i] != layout.Geometry[i] {
			return fmt.Errorf("%w: its geometry is %d, not %d", ErrMismatch, has, layout.Geometry)
		}
	}
	if n := header[headWords]; n != uint64(layout.Words) {
		return fmt.Errorf("%w: it has %d words, not %d", ErrMismatch, n, layout.Words)
	}
	return nil
}

func (l Layout) validate() error {
	if l.Words < 1 || len(l.Geometry) > geometryMax {
		return fmt.Errorf("arena: %d words, %d numbers of geometry", l.Words, len(l.Geometry))
	}
	return nil
}
