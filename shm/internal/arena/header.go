package arena

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Version is the version of the file's header and of the meaning of its words. It must
// change when processes of the old version and the new one could not work together on one
// file.
const Version = 3

// The header is a page: these words, and then the geometry. A file is ready when
// it has its magic, which is written last; while the file is made that word has another
// value, which is written first. Magic, version and boot are at the same place in every
// version.
const (
	headMagic = iota
	headVersion
	headWords
	headBoot // and the word after it
	_
	headClock    // the time namespace of [Now]
	headGeometry // the number of its words; they follow

	headerWords = 512
	headMark    = headerWords - 1 // used by [mappings.find] only
	geometryMax = headMark - headGeometry - 1
	wordsMax    = math.MaxInt / 16
	magic       = 0x0a6d68732d746e73 // "snt-shm\n"
	unfinished  = 0x0a656b616d2d7473 // "st-make\n"
)

var (
	errBoot    = fmt.Errorf("%w: it was made by processes that see another boot id, as in another container", ErrMismatch)
	errDamaged = fmt.Errorf("%w: its header is damaged", ErrMismatch)
	errForeign = fmt.Errorf("%w: the file is something else, and stays as it is", ErrMismatch)
	errBlank   = fmt.Errorf("%w: the file begins with zeros and has another size, and stays as it is", ErrMismatch)
)

// machine identifies what processes must have in common to share a file: a run of the
// system, and a clock, as each time namespace has its own.
type machine struct {
	boot  [2]uint64
	clock uint64 // the inode of the time namespace, 0 where there are none
}

// condition is the condition of a file.
type condition int

const (
	raw   condition = iota // never used: it is empty, or its maker has not finished
	stale                  // made before the machine was last started, or under another boot id
	ready
	// blank: it begins with zeros. A power failure may leave a region like that, but
	// many other files begin so too, such as disk images.
	blank
	foreign // not a region
)

// survey is what is known of a file before it is used.
type survey struct {
	header []uint64
	size   int64 // of the file, in bytes
	inUse  bool  // a process has joined: a lock is held, apart from that of making
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

// known returns an error if the words behind the header mean something else here.
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
		return fmt.Errorf("%w: its file was truncated to %d bytes", ErrMismatch, size)
	}
	return nil
}

// suits returns an error if the header is unknown, or differs from what is asked for.
func (s *survey) suits(layout Layout) error {
	if err := s.known(); err != nil {
		return err
	}
	return fits(s.header, layout)
}

// fits compares a known header with what is asked for.
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

// writeHeader writes the header of a new file, and makes the file ready.
func writeHeader(mem []uint64, layout Layout, here machine) {
	mem[headVersion] = Version
	mem[headWords] = uint64(layout.Words)
	copy(mem[headBoot:], here.boot[:])
	mem[headClock] = here.clock
	mem[headGeometry] = uint64(len(layout.Geometry))
	copy(mem[headGeometry+1:], layout.Geometry)
	atomic.StoreUint64(&mem[headMagic], magic)
}
