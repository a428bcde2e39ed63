// Package arena is memory that the processes of a machine share: a file that all
// of them have mapped, with locks that end with their process, and a way to sleep
// until a word changes. It does not know what the words mean.
package arena

import (
	"errors"
	"fmt"
	"math"
	"slices"
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
const Version = 3

// The header is a page: these words, and then the geometry. A file is ready when
// its magic is there, which is written last; while it is made another word stands
// there, which is written first. Magic, version and boot are where they are in every
// version.
const (
	headMagic = iota
	headVersion
	headWords
	headBoot // and one more
	_
	headClock    // the namespace of [Now]
	headGeometry // its length, and then its numbers

	headerWords = 512
	headMark    = headerWords - 1 // of [Arena.mapAgain], and of no meaning otherwise
	geometryMax = headMark - headGeometry - 1
	wordsMax    = math.MaxInt / 16
	magic       = 0x0a6d68732d746e73 // "snt-shm\n"
	unfinished  = 0x0a656b616d2d7473 // "st-make\n"
)

var (
	// ErrMismatch says that the file is another version's, was made for another
	// geometry or by processes that read another clock, or is something else
	// altogether. The message says which.
	ErrMismatch = errors.New("the region does not fit")

	// ErrInUse says that somebody has the file open who has a lock of it.
	ErrInUse = errors.New("the region is in use")

	// ErrStuck says that whoever is opening the file does not get on with it.
	ErrStuck = errors.New("a process that is opening the region does not go on")

	errBoot    = fmt.Errorf("%w: it was made by processes that see another boot id, as in another container", ErrMismatch)
	errDamaged = fmt.Errorf("%w: its header is damaged", ErrMismatch)
	errForeign = fmt.Errorf("%w: the file is something else, and stays as it is", ErrMismatch)
	errBlank   = fmt.Errorf("%w: the file begins with zeros and has another size, and stays as it is", ErrMismatch)

	// ErrNotOurs says that the file or its directory belongs to another user, or
	// lets other users in.
	ErrNotOurs = errors.New("the region is not safe from other users")
)

// machine is what processes have in common that can share a file: a run of the
// system, and a clock, which a namespace of time can have for itself.
type machine struct {
	boot  [2]uint64
	clock uint64 // the namespace's number, 0 where there are none
}

// condition is that of a file.
type condition int

const (
	raw   condition = iota // nobody has ever had it: it is empty, or its maker has not finished
	stale                  // made before the machine was last started, or where another boot id is seen
	ready
	// blank: it begins with zeros. A disk that has lost power may have left that of a
	// region, and so may much else: images of disks, say.
	blank
	foreign // no region at all
)

// survey is what there is to be known of a file before it is used.
type survey struct {
	header []uint64
	size   int64 // of the file, in bytes
	here   machine
}

func (s *survey) condition() condition {
	switch word := s.header[headMagic]; {
	case word == unfinished || s.size == 0:
		return raw
	case word == 0:
		return blank
	case word != magic:
		return foreign
	case [2]uint64(s.header[headBoot:]) != s.here.boot:
		return stale
	default:
		return ready
	}
}

// known refuses a header whose words mean something else here.
func (s *survey) known() error {
	header, size, here := s.header, s.size, s.here
	switch v, clock := header[headVersion], header[headClock]; {
	case v != Version:
		return fmt.Errorf("%w: it is of version %d, this program knows version %d", ErrMismatch, v, Version)
	case clock != here.clock:
		return fmt.Errorf("%w: it is of time namespace %d, this process is in %d, where clocks differ",
			ErrMismatch, clock, here.clock)
	case header[headGeometry] > geometryMax || header[headWords] > wordsMax:
		return errDamaged
	case size < sizeOf(int(header[headWords])):
		return fmt.Errorf("%w: its file was cut off at %d bytes", ErrMismatch, size)
	}
	return nil
}

// suits refuses a header that is unknown, or of something else than what is asked for.
func (s *survey) suits(layout Layout) error {
	if err := s.known(); err != nil {
		return err
	}
	return fits(s.header, layout)
}

// fits compares a header that is known with what is asked for.
func fits(header []uint64, layout Layout) error {
	if !slices.Equal(geometryOf(header), layout.Geometry) {
		return fmt.Errorf("%w: it was made for another geometry", ErrMismatch)
	}
	if n := header[headWords]; n != uint64(layout.Words) {
		return fmt.Errorf("%w: it has %d words, not %d", ErrMismatch, n, layout.Words)
	}
	return nil
}

func geometryOf(header []uint64) []uint64 { return header[headGeometry+1:][:header[headGeometry]] }

func sizeOf(words int) int64 { return int64(headerWords+words) * 8 }

func (l Layout) validate() error {
	if l.Words < 1 || l.Words > wordsMax || len(l.Geometry) > geometryMax {
		return fmt.Errorf("arena: %d words, %d numbers of geometry", l.Words, len(l.Geometry))
	}
	return nil
}
