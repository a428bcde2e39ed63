package record

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/stintgo/stint/queue"
)

// writer appends fields to b. Its methods write nothing for a zero value. The
// zero writer is ready to use.
type writer struct{ b []byte }

func (w *writer) tag(f field, wire uint64) {
	w.b = binary.AppendUvarint(w.b, uint64(f)<<wireBits|wire)
}

func (w *writer) number(f field, n uint64) {
	if n == 0 {
		return
	}
	w.tag(f, wireNumber)
	w.b = binary.AppendUvarint(w.b, n)
}

func (w *writer) signed(f field, n int64) { w.number(f, fold(n)) }

// time does not go by number: 1970 is a time like any other, and 0.
func (w *writer) time(f field, t time.Time) {
	if t.IsZero() {
		return
	}
	w.tag(f, wireNumber)
	w.b = binary.AppendUvarint(w.b, fold(nanos(t)))
}

func (w *writer) text(f field, s string) {
	if s == "" {
		return
	}
	w.tag(f, wireBytes)
	w.b = binary.AppendUvarint(w.b, uint64(len(s)))
	w.b = append(w.b, s...)
}

func (w *writer) bytes(f field, v []byte) {
	if len(v) == 0 {
		return
	}
	w.tag(f, wireBytes)
	w.b = binary.AppendUvarint(w.b, uint64(len(v)))
	w.b = append(w.b, v...)
}

func (w *writer) id(f field, id queue.ID) {
	if id.IsZero() {
		return
	}
	w.bytes(f, id[:])
}

func (w *writer) ids(f field, ids []queue.ID) {
	if len(ids) == 0 {
		return
	}
	w.tag(f, wireBytes)
	w.b = binary.AppendUvarint(w.b, uint64(len(ids)*len(queue.ID{})))
	for i := range ids {
		w.b = append(w.b, ids[i][:]...)
	}
}

// open begins a field whose bytes are fields. They are written next, and then
// close gets what open returned. An element of a list is written even if it is
// empty, since it counts.
func (w *writer) open(f field) (from int) {
	w.tag(f, wireBytes)
	w.b = append(w.b, 0)
	return len(w.b)
}

// close writes how many bytes there have been since open, which left one byte
// for that. Nearly always it is enough: moving the bytes of a few long elements
// costs less than measuring all of them first.
func (w *writer) close(from int) {
	n := uint64(len(w.b) - from)
	if n < 1<<7 {
		w.b[from-1] = byte(n)
		return
	}
	var count [binary.MaxVarintLen64]byte
	w.b = slices.Replace(w.b, from-1, from, count[:binary.PutUvarint(count[:], n)]...)
}
