package record_test

import (
	"testing"

	"github.com/stintgo/stint/queue/internal/record"
)

func BenchmarkAppend(b *testing.B) {
	row, buf := typical(), []byte(nil)
	b.ReportAllocs()
	for b.Loop() {
		buf = record.Append(buf[:0], row)
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkDecode(b *testing.B) {
	buf := record.Append(nil, typical())
	b.ReportAllocs()
	b.SetBytes(int64(len(buf)))
	for b.Loop() {
		if _, err := record.Decode(buf); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPeek(b *testing.B) {
	buf := record.Append(nil, typical())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := record.Peek(buf); err != nil {
			b.Fatal(err)
		}
	}
}
