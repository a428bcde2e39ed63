package filestore_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// A directory that was used with a clock that was ahead is corrected by the first call
// of the next opening, which logs that; the openings after it find nothing to correct.
func TestC8_ClockAheadIsLoggedOnce(t *testing.T) {
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, ahead := range map[string]time.Duration{
		"none": 0, "less than a second": time.Second - 1, "an hour": time.Hour, "a year": 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var ids queue.IDs
			runAt := queue.Options{RunAt: start.Add(ahead + 10*time.Minute)}
			task := queue.NewTask{ID: ids.New(start), Spec: queue.Spec{Kind: "k", Options: runAt}}
			tended(t, dir, start.Add(ahead), task)
			logged := 0
			for range 3 {
				log, next := tended(t, dir, start)
				if want := start.Add(10 * time.Minute); !next.Equal(want) {
					t.Errorf("a task that was delayed by 10 min is due %v after its submission", next.Sub(start))
				}
				logged += strings.Count(log, "ahead="+ahead.String())
			}
			want := 0
			if ahead >= time.Second {
				want = 1
			}
			if logged != want {
				t.Errorf("a clock that was ahead by %s is logged %d times, want %d", ahead, logged, want)
			}
		})
	}
}

// tended opens the store in a directory for one call of Submit, if there are tasks, and
// one of Maintain, and returns what it logs and when something is due.
func tended(t *testing.T, dir string, now time.Time, tasks ...queue.NewTask) (log string, next time.Time) {
	t.Helper()
	var b bytes.Buffer
	store, err := filestore.Open(dir, filestore.Config{Logger: slog.New(slog.NewTextHandler(&b, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if len(tasks) > 0 {
		if _, err := store.Submit(t.Context(), now, tasks); err != nil {
			t.Fatal(err)
		}
	}
	if next, err = store.Maintain(t.Context(), now, 0); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), next
}
