package record_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/internal/record"
)

// golden returns the encoding of full from the introduction of version 1. No flag
// regenerates it, because rows on disk do not change either. A new field of full gets a
// new line in the file.
func golden(tb testing.TB) (row []byte) {
	tb.Helper()
	text, err := os.ReadFile("testdata/version1.hex")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		digits, _, _ := strings.Cut(line, "#")
		b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
		if err != nil {
			tb.Fatalf("%q: %v", line, err)
		}
		row = append(row, b...)
	}
	return row
}

func TestVersion1IsAsItWas(t *testing.T) {
	want := golden(t)
	if got := record.Append(nil, full()); !bytes.Equal(got, want) {
		t.Errorf("the row is\n%x, and was\n%x", got, want)
	}
	got, err := record.Decode(want)
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, *full())
}

// Rows contain states and triggers as numbers, so a new one must be added at the end of
// its list in package queue, and none may be removed.
func TestNumbersAreAsTheyWere(t *testing.T) {
	states := []string{"none", "scheduled", "held", "waiting", "running", "paused", "succeeded", "dead", "cancelled"}
	for n, name := range states {
		if got := queue.State(n).String(); got != name {
			t.Errorf("state %d is %s, and was %s", n, got, name)
		}
	}
	triggers := []string{
		1: "submit", "due", "hold", "unhold", "claim", "succeed", "fail", "snooze", "give_back", "lose", "pause",
		"resume", "cancel", "retry", "expire", "forget", "edit",
	}
	for n, name := range triggers {
		if got := queue.Trigger(n).String(); n > 0 && got != name {
			t.Errorf("trigger %d is %s, and was %s", n, got, name)
		}
	}
}
