// Package input reads the inputs of jobs: records of a stream, or the lists of
// the command line.
package input

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxRecord is the longest record in bytes. Linux passes no argument above 128 KiB, so a
// longer record means a wrong separator.
const MaxRecord = 1 << 20

// Errors of an input that cannot become an argument.
var (
	// ErrLong is the error of a record above [MaxRecord].
	ErrLong = errors.New("longer than 1 MiB: does the input use another separator? See -0 and -d")
	// ErrNUL is the error of a record with a NUL byte, which arguments cannot contain.
	ErrNUL = errors.New("holds a NUL byte: use -0 if NUL separates the inputs")
)

// Records iterates over the records of r, which end with sep; the last may lack it. Empty
// records are skipped: an empty argument is nearly always a stray blank line, and
// dangerous in "rm -r dir/{}". A failed read, or a record that cannot be an argument, is
// yielded as the last element.
func Records(r io.Reader, sep byte) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		records(bufio.NewReaderSize(r, 64<<10), sep, false, yield)
	}
}

// AllRecords is [Records] with empty records, which count in lists that are linked to
// others by position.
func AllRecords(r io.Reader, sep byte) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		records(bufio.NewReaderSize(r, 64<<10), sep, true, yield)
	}
}

func records(buffered *bufio.Reader, sep byte, empty bool, yield func(string, error) bool) {
	for n := 1; ; {
		record, err := next(buffered, sep)
		last := err == io.EOF //nolint:errorlint // next returns it bare
		if (err == nil || last) && sep != 0 && bytes.IndexByte(record, 0) >= 0 {
			err = ErrNUL
		}
		switch {
		case last && len(record) == 0:
			return
		case err != nil && err != io.EOF: //nolint:errorlint // likewise
			yield("", fmt.Errorf("input %d: %w", n, err))
			return
		}
		if len(record) == 0 && !empty {
			continue
		}
		if !yield(string(record), nil) {
			return
		}
		n++
	}
}

// next returns the next record without its separator. The slice is valid until the next
// call. At the end of the stream the error is io.EOF, unwrapped, together with the data
// after the last separator.
func next(r *bufio.Reader, sep byte) ([]byte, error) {
	piece, err := r.ReadSlice(sep)
	if err == nil {
		return piece[:len(piece)-1], nil // all but very long records: no copy
	}
	var long []byte
	for errors.Is(err, bufio.ErrBufferFull) {
		if long = append(long, piece...); len(long) > MaxRecord {
			return nil, ErrLong
		}
		piece, err = r.ReadSlice(sep)
	}
	long = append(long, piece...)
	if err == nil {
		long = long[:len(long)-1]
	}
	return long, err
}
