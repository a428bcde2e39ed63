package record_test

import (
	"encoding/hex"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// row decodes hexadecimal digits.
func row(tb testing.TB, digits string) []byte {
	tb.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestARowCutShortIsSeen(t *testing.T) {
	for _, whole := range [][]byte{record.Append(nil, typical()), golden(t)} {
		for n := range whole {
			if got, err := record.Decode(whole[:n]); !errors.Is(err, record.ErrCorrupt) {
				t.Errorf("%d of %d bytes are the row %+v, %v", n, len(whole), got, err)
			}
		}
		if _, err := record.Decode(append(whole, 0)); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("with a byte too many: %v", err)
		}
	}
}

func TestCorruptRows(t *testing.T) {
	tests := []struct{ name, digits, say string }{
		{"nothing", "", "it is empty"},
		{"only a version", "01", "cut short after 1 bytes"},
		{"no end", "01 1c01", "cut short after 3 bytes"},
		{"half a tag", "01 80 00", "field number 0 at byte 1: it breaks off"},
		{"a tag without a value", "01 1c01 20 00", "field number 0 at byte 3: it breaks off"},
		{"65 bits", "01 1cffffffffffffffffff02 00", "field number 0 at byte 1: it breaks off in a number, or that has more"},
		{"number 0", "01 0001 00", "field number 0 at byte 1: it should stand before id"},
		{"not in order", "01 2001 1c01 00", "field seq at byte 3: it should stand before state"},
		{"wire 2", "01 1e01 00", "field seq at byte 1: there is no wire 2"},
		{"wire 3", "01 1f01 00", "field seq at byte 1: there is no wire 3"},
		{"too long", "01 0902 61 00", "field queue at byte 1: there are 1 bytes and not 2"},
		{"far too long", "01 09ffffffffffffffffff01 61 00", "field queue at byte 1: there are 1 bytes and not 1844"},
		{"a number for bytes", "01 0801 00", "field queue at byte 1: it has a number, and should have bytes"},
		{"bytes for a number", "01 1d0161 00", "field seq at byte 1: it has bytes, and should have a number"},
		{"a short ID", "01 050101 00", "field id at byte 1: an ID has 16 bytes, and not 1"},
		{"a number for an ID", "01 0410 00", "field id at byte 1: it has a number"},
		{"half an ID in a list", "01 490101 00", "field after at byte 1: IDs have 16 bytes each, and these 1"},
		{"a state of 9 bits", "01 208002 00", "field state at byte 1: 256 is more than 8 bits"},
		{"a tier of 9 bits", "01 248002 00", "field tier at byte 1: 128 is more than 8 bits"},
		{"inside a step", "01 1c01 6901 04 00", "field number 0 at byte 5: it breaks off"},
		{"a step too long", "01 6903 110261 00", "field step.by at byte 3: there are 1 bytes and not 2"},
		{"a state of a step", "01 6903 0c8002 00", "field step.to at byte 3: 256 is more than 8 bits"},
		{"a step that is a number", "01 6801 00", "field steps at byte 1: it has a number"},
		{"inside a label", "01 810102 0801 00", "field label.value at byte 4: it has a number"},
		{"a label that is a number", "01 800101 00", "field labels at byte 1: it has a number"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := record.Decode(row(t, test.digits))
			if !errors.Is(err, record.ErrCorrupt) || !strings.Contains(err.Error(), test.say) {
				t.Errorf("the row is %+v, %v, and should be corrupt: %s", got, err, test.say)
			}
		})
	}
}

func TestAnotherVersionIsRefused(t *testing.T) {
	b := record.Append(nil, typical())
	for v := range math.MaxUint8 + 1 {
		b[0] = byte(v)
		_, err := record.Decode(b)
		_, peekErr := record.Peek(b)
		if known := v == 1; known != (err == nil) || known != (peekErr == nil) ||
			!known && (!errors.Is(err, record.ErrVersion) || !errors.Is(peekErr, record.ErrVersion)) {
			t.Errorf("version %d: Decode: %v; Peek: %v", v, err, peekErr)
		}
	}
}

// A newer program may have added fields: here 21 and 23 to the header, 7 to a step,
// and 50 (as a number, and twice as bytes) and 2^62-1 to the rest.
func TestUnknownFieldsAreSkipped(t *testing.T) {
	b := row(t, "01 1c07 5401 5d0161 6904 0c03 1c05 c80101 c9010161 c9010162 fdffffffffffffffff0100 00")
	got, err := record.Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, record.Row{Task: queue.Task{Steps: []queue.Step{{To: queue.Waiting}}}, Seq: 7})
}

// Peek stops at the end of the header.
func TestPeekDoesNotReadTheRest(t *testing.T) {
	header, err := record.Peek(row(t, "01 1c07 6d0161 0000 ffff 00"))
	if err != nil || header.Seq != 7 {
		t.Errorf("the header is %+v, %v", header, err)
	}
}

// A length or count in a row allocates no memory beyond the bytes that follow.
func TestDecodeTakesNoMoreThanItIsGiven(t *testing.T) {
	steps := "01" + strings.Repeat("6900", 10_000) + "00"
	labels := "01" + strings.Repeat("810100", 10_000) + "00"
	ids := "01 49ffffffffff07" + strings.Repeat("00", 100)
	for _, digits := range []string{steps, labels, ids} {
		b := row(t, digits)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = record.Decode(b)
		runtime.ReadMemStats(&after)
		if took, most := after.TotalAlloc-before.TotalAlloc, uint64(64*len(b)+16<<10); took > most {
			t.Errorf("%d bytes took %d bytes of memory, and should take at most %d", len(b), took, most)
		}
	}
}
