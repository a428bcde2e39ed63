package upload_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/upload"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// screen returns the lines that a terminal shows after a text whose only control sequences go up
// some lines and delete what is below.
func screen(t *testing.T, text string) string {
	t.Helper()
	up := regexp.MustCompile("^\x1b\\[([0-9]+)A\x1b\\[J")
	var lines []string
	for text != "" {
		if at := up.FindStringSubmatch(text); at != nil {
			n, err := strconv.Atoi(at[1])
			if err != nil || n > len(lines) {
				t.Fatalf("%d lines up of %d: %v", n, len(lines), err)
			}
			lines, text = lines[:len(lines)-n], text[len(at[0]):]
			continue
		}
		line, rest, ok := strings.Cut(text, "\n")
		if !ok || strings.Contains(line, "\x1b") {
			t.Fatalf("the line %q", line)
		}
		lines, text = append(lines, line), rest
	}
	return strings.Join(lines, "\n")
}

// Notes and failures stay above the bars, and nothing is left of the bars.
func TestE2_BarsAndNotes(t *testing.T) {
	var out strings.Builder
	b := &upload.Bars{W: &out, Width: func() int { return 80 }}
	v := upload.View{Left: 2, Running: []transfer.Transfer{{Name: "a", Size: 10, Done: 5}, {Name: "b"}}}
	b.Progress(v)
	if shown := screen(t, out.String()); !strings.HasPrefix(shown, "[##########..........]  50%") ||
		strings.Count(shown, "\n") != 2 {
		t.Errorf("it shows\n%s", shown)
	}
	b.Note("all that is left is paused")
	b.Progress(v)
	b.Finished(transfer.Transfer{Path: "a", State: queue.Dead, Err: "no space"})
	b.Finished(transfer.Transfer{Path: "b", State: queue.Succeeded})
	b.Progress(v)
	b.Note("the end")
	b.End(upload.Sum{}, nil)
	want := "stint: all that is left is paused\nstint: a failed: no space\nstint: the end"
	if shown := screen(t, out.String()); shown != want {
		t.Errorf("it shows\n%s\nwant\n%s", shown, want)
	}
}

// An upload all of whose bytes have been sent waits for the server: its rate says nothing.
func TestE3_AllBytesAreSent(t *testing.T) {
	var out strings.Builder
	b := &upload.Bars{W: &out, Width: func() int { return 80 }}
	b.Progress(upload.View{Left: 1, Done: 3, Size: 3, Running: []transfer.Transfer{{Name: "a", Size: 3, Done: 3}}})
	want := "[####################] 100% waits for the server  a\n1 left, 3 B of 3 B, waits for the server"
	if shown := screen(t, out.String()); shown != want {
		t.Errorf("it shows\n%s\nwant\n%s", shown, want)
	}
}

// The line about all uploads has their sizes, as far as they are known, and a time only if it means something.
func TestE3_LineOfAll(t *testing.T) {
	for want, v := range map[string]upload.View{
		"1 left, 5 B of 10 B, 1 B/s, 0:05 left":           {Done: 5, Size: 10, Rate: 1},
		"1 left, 5 B, 1 B/s":                              {Done: 5, Unsized: 5, Rate: 1},
		"1 left, 5 B of 10 B and 3 B of the input, 1 B/s": {Done: 8, Unsized: 3, Size: 10, Rate: 1},
		"1 left, 0 B of 10.0 GiB, 0 B/s":                  {Size: 10 << 30, Rate: 0.01}, // in centuries
	} {
		var out strings.Builder
		v.Left = 1
		(&upload.Bars{W: &out, Width: func() int { return 80 }}).Progress(v)
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("%q; want %q", got, want)
		}
	}
}

// Each line of JSON has its event, and the last one the counts.
func TestE2_LinesOfJSON(t *testing.T) {
	var out, notes strings.Builder
	j := &upload.JSON{Notes: upload.Notes{W: &notes}, Out: &out}
	j.Progress(upload.View{Left: 1, Sum: upload.Sum{Skipped: 2}})
	j.Progress(upload.View{}) // within the same second
	j.Finished(transfer.Transfer{Path: "a", State: queue.Dead})
	j.Note("a note")
	j.End(upload.Sum{Sent: 1, Bytes: 5, Failed: 1, Cancelled: 2, Left: 3}, errors.New("the reason"))
	want := []map[string]any{
		{"event": "progress", "left": 1., "skipped": 2., "running": []any{}},
		{"event": "finished"},
		{
			"event": "end", "sent": 1., "bytes": 5., "skipped": 0., "failed": 1., "cancelled": 2., "left": 3.,
			"error": "the reason",
		},
	}
	d := json.NewDecoder(strings.NewReader(out.String()))
	for _, fields := range want {
		var got map[string]any
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		for name, value := range fields {
			if list, ok := value.([]any); ok {
				if given, _ := got[name].([]any); given == nil || len(given) != len(list) {
					t.Errorf("%v has no list %s", got, name)
				}
			} else if got[name] != value {
				t.Errorf("%v has %s %v, want %v", got, name, got[name], value)
			}
		}
	}
	if d.More() || notes.String() != "stint: a note\n" {
		t.Errorf("more lines than wanted: %s; notes %q", out.String(), notes.String())
	}
}
