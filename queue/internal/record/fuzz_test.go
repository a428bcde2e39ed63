package record_test

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/stintgo/stint/queue/internal/record"
)

// FuzzDecode checks that any bytes are either rejected with an error of the package, or
// are a row that survives encoding and decoding, and whose header Peek returns.
func FuzzDecode(f *testing.F) {
	f.Add(record.Append(nil, &record.Row{}))
	f.Add(record.Append(nil, typical()))
	f.Add(golden(f))
	f.Add(row(f, "01 5401 5d0161 a0010100"))
	f.Add(row(f, "01 690a 0c03 1c05 6900 8101 02 0900 00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		given := bytes.Clone(b)
		header, peekErr := record.Peek(b)
		got, err := record.Decode(b)
		if !bytes.Equal(b, given) {
			t.Fatal("reading has changed the bytes")
		}
		for _, err := range []error{err, peekErr} {
			if err != nil && !errors.Is(err, record.ErrCorrupt) && !errors.Is(err, record.ErrVersion) {
				t.Fatalf("%v is not one of the package's errors", err)
			}
		}
		if err != nil {
			return
		}
		same(t, again(t, &got), got)
		if want := headerOf(&got); peekErr != nil || !reflect.DeepEqual(header, want) {
			t.Fatalf("the header is\n%+v, %v, and should be\n%+v", header, peekErr, want)
		}
	})
}
