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

func (w *writer) signed(f field, n int64) { w.number(f, zigzag(n)) }

// time does not call number, which would omit 1970-01-01T00:00:00Z.
func (w *writer) time(f field, t time.Time) {
	if t.IsZero() {
		return
	}
	w.tag(f, wireNumber)
	w.b = binary.AppendUvarint(w.b, zigzag(nanos(t)))
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

// open begins a field whose bytes are fields. The caller writes these next, and then
// calls close with the result of open. An empty element of a list is written too, because
// it counts.
func (w *writer) open(f field) (from int) {
	w.tag(f, wireBytes)
	w.b = append(w.b, 0)
	return len(w.b)
}

// close writes the number of bytes since open, which reserved one byte for it. One byte
// is nearly always enough: moving the bytes of a few long elements costs less than
// measuring all elements first.
func (w *writer) close(from int) {
	n := uint64(len(w.b) - from)
	if n < 1<<7 {
		w.b[from-1] = byte(n)
		return
	}
	var count [binary.MaxVarintLen64]byte
	w.b = slices.Replace(w.b, from-1, from, count[:binary.PutUvarint(count[:], n)]...)
}
