package progress_test

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/progress"
)

func TestBarLine(t *testing.T) {
	half := progress.Snapshot{Succeeded: 50, Total: 100, Running: 2}
	failed := progress.Snapshot{Succeeded: 8, Failed: 2, Guess: 1000, Running: 4}
	for _, row := range []struct {
		s     progress.Snapshot
		e     progress.Estimate
		width int
		want  string
	}{
		{
			half,
			progress.Estimate{PerSecond: 5, Left: 10 * time.Second},
			79,
			strings.Repeat("#", 18) + strings.Repeat(".", 18) + "  50/100 (50%)  0:10 left  5.0/s  2 running",
		},
		{half, progress.Estimate{}, 30, "50/100 (50%)  -/s  2 running"},
		{half, progress.Estimate{}, 20, "50/100 (50%)  -/s"},
		{half, progress.Estimate{}, 5, "50/10"},
		{half, progress.Estimate{}, 0, ""},
		{failed, progress.Estimate{PerSecond: 250}, 44, "10/~1000 (1%)  2 failed  250/s  4 running"},
		{progress.Snapshot{Succeeded: 7}, progress.Estimate{PerSecond: 0.05}, 60, "7  3.0/min  0 running"},
	} {
		got := progress.BarLine(row.s, row.e, row.width)
		if got != row.want || len(got) > row.width {
			t.Errorf("width %d:\n%q, want\n%q", row.width, got, row.want)
		}
	}
}

func TestPlainLine(t *testing.T) {
	got := progress.PlainLine(progress.Snapshot{Succeeded: 40, Skipped: 10, Failed: 1, Total: 102, Running: 2},
		progress.Estimate{PerSecond: 0.5, Left: 5000 * time.Second})
	if want := "stint: 51/102 done (50%), 1 failed, 2 running, 0.5/s, 1:23:20 left\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestJSONLine(t *testing.T) {
	line := progress.JSONLine(time.Unix(0, 0), progress.Snapshot{Succeeded: 3, Failed: 1, Total: 8},
		progress.Estimate{PerSecond: 1.23456, Left: 1500 * time.Millisecond})
	var got map[string]any
	if err := json.Unmarshal([]byte(line), &got); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]any{
		"event": "progress", "done": 4.0, "total": 8.0, "per_second": 1.234, "left_s": 1.5, "time": "1970-01-01T00:00:00Z",
	} {
		if got[name] != want {
			t.Errorf("%s = %v, want %v", name, got[name], want)
		}
	}
}

func TestSpeed_FollowsTheLastHalfMinute(t *testing.T) {
	var s progress.Speed
	now, ended := time.Unix(1000, 0), int64(0)
	run := func(seconds int, perSecond int64) (e progress.Estimate) {
		for range seconds {
			now = now.Add(time.Second)
			ended += perSecond
			e = s.Estimate(now, progress.Snapshot{Succeeded: ended, Total: 1_000_000})
		}
		return e
	}
	if e := run(1, 10); e.PerSecond != 0 || e.Left != 0 {
		t.Errorf("from one look: %+v", e)
	}
	for _, perSecond := range []int64{10, 500, 2} {
		e := run(60, perSecond)
		if e.PerSecond != float64(perSecond) {
			t.Errorf("at %d/s: %v", perSecond, e.PerSecond)
		}
		if want := float64(1_000_000-ended) / float64(perSecond); e.Left.Seconds() != want {
			t.Errorf("at %d/s: %v left, want %v s", perSecond, e.Left, want)
		}
	}
}

func TestMeter(t *testing.T) {
	var m progress.Meter
	for range 4 {
		m.Read()
	}
	m.Skip()
	m.Start()
	m.Start()
	m.Stop()
	m.Retry()
	if good, bad := m.End(true); good != 1 || bad != 0 {
		t.Errorf("End = %d, %d", good, bad)
	}
	if good, bad := m.End(false); good != 1 || bad != 1 {
		t.Errorf("End = %d, %d", good, bad)
	}
	if _, ok := m.Snapshot().Share(); ok {
		t.Error("a share of an unknown total")
	}
	m.SetGuess(6)
	if share, ok := m.Snapshot().Share(); !ok || share != 0.5 {
		t.Errorf("share %v of a guess", share)
	}
	m.EndOfInput()
	want := progress.Snapshot{Read: 4, Skipped: 1, Running: 1, Succeeded: 1, Failed: 1, Retried: 1, Total: 4, Guess: 6}
	if got := m.Snapshot(); got != want || got.Done() != 3 {
		t.Errorf("snapshot %+v, want %+v", got, want)
	}
}

// screen is a terminal of one line.
type screen struct {
	mu   sync.Mutex
	text string
}

func (s *screen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := string(b)
	if i := strings.LastIndex(text, "\r\x1b[K"); i >= 0 {
		s.text, text = "", text[i+len("\r\x1b[K"):]
	}
	s.text += text
	return len(b), nil
}

func (s *screen) shows() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text
}

func TestReporter_Bar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, m := &screen{}, &progress.Meter{}
		bar := progress.NewBar(s, func() int { return 80 }, func(string) string { return "" })
		r := progress.Reporter{Mode: progress.ModeBar, Meter: m, Bar: bar}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { r.Run(ctx); close(done) }()
		m.SetTotal(4)
		m.End(true)
		time.Sleep(time.Second)
		synctest.Wait()
		if got := s.shows(); !strings.Contains(got, "#..") || !strings.Contains(got, "1/4 (25%)") {
			t.Errorf("screen shows %q", got)
		}
		bar.Hide()
		if got := s.shows(); got != "" {
			t.Errorf("hidden, and shows %q", got)
		}
		bar.Show()
		if got := s.shows(); !strings.Contains(got, "1/4") {
			t.Errorf("shown again, and shows %q", got)
		}
		cancel()
		<-done
		if got := s.shows(); got != "" {
			t.Errorf("after the end: %q", got)
		}
	})
}

func TestReporter_Lines(t *testing.T) {
	for mode, want := range map[progress.Mode]int{progress.ModePlain: 3, progress.ModeJSON: 36, progress.ModeNone: 0} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			r := progress.Reporter{Mode: mode, Meter: &progress.Meter{}, W: &out}
			ctx, cancel := context.WithTimeout(t.Context(), 35500*time.Millisecond)
			defer cancel()
			r.Run(ctx)
			if got := strings.Count(out.String(), "\n"); got != want {
				t.Errorf("%s: %d lines in 35.5 s, want %d", mode, got, want)
			}
		})
	}
}

func TestParseMode(t *testing.T) {
	for _, name := range []string{"auto", "bar", "plain", "json", "none"} {
		if m, err := progress.ParseMode(name); err != nil || string(m) != name {
			t.Errorf("%s: %s, %v", name, m, err)
		}
	}
	if _, err := progress.ParseMode("yes"); err == nil || !strings.Contains(err.Error(), "plain") {
		t.Errorf("yes: %v", err)
	}
}
