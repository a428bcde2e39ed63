package run_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/input"
	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/retry"
)

// A signal that arrives while the run ends anyway is handled without a data race, and the run
// ends by it or without it.
func TestSignal_WhileEnding(t *testing.T) {
	command, err := run.NewCommand([]string{"false"}, run.CommandConfig{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	for range 200 {
		signals := make(chan os.Signal, 1)
		o := run.Do(&run.Config{
			Command: command, Source: run.Source{Lists: []input.Group{{{"1"}}}},
			Jobs: 1, Lookahead: 1, Retry: retry.Policy{Attempts: 2, Base: time.Hour, Max: time.Hour}, KillAfter: time.Minute,
			Sink: output.NewSink(out, out, nil, [2]bool{}), Spool: output.NewSpool(dir), Meter: &progress.Meter{},
			Trace: true, Say: func(msg string) {
				if msg == "false 1" {
					signals <- syscall.SIGTERM
				}
			},
			Signal: signals,
		})
		if o.Err != nil || o.Signal != syscall.SIGTERM || o.Failed > 1 {
			t.Fatalf("%+v", o)
		}
	}
}
