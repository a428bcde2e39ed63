package transfer_test

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/transfer"
)

var update = flag.Bool("update", false, "write the drawing of the states of chunks into docs/upload.md")

const (
	page      = "../docs/upload.md"
	drawnFrom = "<!-- made by go test ./transfer -update -->\n"
	drawnTo   = "<!-- end of what is made -->\n"
)

// The page has the drawing and the table that the code has.
func TestE4_ChunkStatesAreDrawnAsTheyAre(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok1 := strings.Cut(string(text), drawnFrom)
	_, tail, ok2 := strings.Cut(rest, drawnTo)
	if !ok1 || !ok2 {
		t.Fatalf("%s has not the lines %q and %q", page, drawnFrom, drawnTo)
	}
	var drawing, table strings.Builder
	drawing.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> pending\n")
	table.WriteString("| from | on | to |\n|---|---|---|\n")
	for _, line := range transfer.ChunkTransitions() {
		fmt.Fprintf(&drawing, "    %s --> %s: %s\n", line.From, line.To, line.On)
		fmt.Fprintf(&table, "| %s | %s | %s |\n", line.From, line.On, line.To)
	}
	drawing.WriteString("```\n\n")
	want := head + drawnFrom + drawing.String() + table.String() + drawnTo + tail
	if want == string(text) {
		return
	}
	if !*update {
		t.Fatalf("%s is out of date: run go test ./transfer -update", page)
	}
	if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// The code changes states only as the table says. A stop and a loss may find chunks that they
// do not concern.
func TestE4_ChunkTransitions(t *testing.T) {
	for _, from := range transfer.ChunkStates() {
		for on := transfer.OnSend; on <= transfer.OnLost; on++ {
			want, allowed := from, false
			for _, line := range transfer.ChunkTransitions() {
				if line.From == from && line.On == on {
					want, allowed = line.To, true
				}
			}
			if on == transfer.OnStop || on == transfer.OnLost {
				allowed = true
			}
			if to, ok := transfer.Drive(from, on); to != want || ok != allowed {
				t.Errorf("%s, %s: %s, %t; want %s, %t", from, on, to, ok, want, allowed)
			}
		}
	}
}

func TestE4_ChunkStatesInText(t *testing.T) {
	for _, s := range transfer.ChunkStates() {
		text, err := s.MarshalText()
		var back transfer.ChunkState
		if err2 := back.UnmarshalText(text); err != nil || err2 != nil || back != s {
			t.Errorf("%s: %q, %v, %v, %s", s, text, err, err2, back)
		}
	}
	var s transfer.ChunkState
	if err := s.UnmarshalText([]byte("x")); err == nil {
		t.Error("x is a state")
	}
}

// Lanes cover the file without a gap, in whole chunks, and there are never too many of both.
func TestE4_Layouts(t *testing.T) {
	const mi = 1 << 20
	for _, test := range []struct {
		size, chunk int64
		lanes       int
		wantChunk   int64
		wantLanes   int
	}{
		{0, 0, 4, 16 * mi, 1},
		{1, 0, 4, 16 * mi, 1},
		{16*mi + 1, 0, 4, 16 * mi, 2},
		{100 * mi, mi, 16, mi, 16},
		{100 * mi, mi, 0, mi, 1},
		{160_000 * mi, 0, 1, 16 * mi, 1},
		{160_000*mi + 1, 0, 1, 32 * mi, 1},
		{1 << 50, 0, 3, 6711 * 16 * mi, 3},
	} {
		chunk, ranges := transfer.Lanes(test.size, test.chunk, test.lanes)
		at := int64(0)
		for _, r := range ranges {
			if r[0] != at || r[0]%chunk != 0 || r[1] < r[0] {
				t.Errorf("%+v: the lanes are %v", test, ranges)
			}
			at = r[1]
		}
		if at != test.size || chunk != test.wantChunk || len(ranges) != test.wantLanes ||
			test.size/chunk > transfer.MaxChunks {
			t.Errorf("%+v: %d lanes up to %d, chunks of %d", test, len(ranges), at, chunk)
		}
	}
}

// The average follows the rate, falls when nothing is sent, is not that of a burst at the
// beginning, and survives its text.
func TestE3_Rates(t *testing.T) {
	rates := transfer.Rates(500*time.Millisecond, 1000, 1000, 1000)
	if rates[1] != 2000 || math.Abs(rates[2]-2000) > 1 {
		t.Errorf("a constant rate is %v; want 2000", rates)
	}
	rates = transfer.Rates(time.Second, 1000, 1000, 0, 0)
	if math.Abs(rates[3]-500) > 1 {
		t.Errorf("two seconds after the last byte, the rates are %v; want 500", rates)
	}
	rates = transfer.Rates(500*time.Millisecond, 0, 1_000_000, 1000, 1000)
	if rates[1] > 500_000 || math.Abs(rates[2]-2000) > 1 || math.Abs(rates[3]-2000) > 1 {
		t.Errorf("after a burst, the rates are %v; want 0, 500000 at most, 2000, 2000", rates)
	}
	for _, rate := range []float64{1, 999, 1023, 1024, 123456, 5 << 20, 3 << 30} {
		text := transfer.RateText(rate)
		if got := transfer.RateOf(text); math.Abs(got-rate) > rate/1000 {
			t.Errorf("%v B/s is %q, which is %v", rate, text, got)
		}
	}
	if got := transfer.RateOf("not a rate"); got != 0 {
		t.Errorf("text without a rate is %v", got)
	}
}

// A checkpoint that was written is read as it was, and others are refused without a panic.
func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(`{"version":1,"file":{"size":100,"mtime_ns":5},"chunk_size":40,"group":"ab","urls":["http://h/1",""],` +
		`"chunks":"dpe","crc32c":"AAAAAQAAAAAAAAAA"}`))
	f.Add([]byte(`{"version":1,"file":{"size":0},"chunk_size":1,"urls":[""],"chunks":"","crc32c":""}`))
	f.Add([]byte(`{"version":1,"file":{"size":-1},"chunk_size":0,"urls":[],"chunks":"x"}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, encoded []byte) {
		once, err := transfer.Reencode(encoded)
		if err != nil {
			return
		}
		twice, err := transfer.Reencode(once)
		if err != nil || string(once) != string(twice) {
			t.Errorf("%s, then %s, error %v", once, twice, err)
		}
	})
}
