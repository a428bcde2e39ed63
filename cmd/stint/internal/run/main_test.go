package run_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/input"
	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/internal/watcher"
)

// config returns the configuration of a run of a command, once for each input, whose output goes to a file.
func config(t *testing.T, name string, inputs ...string) run.Config {
	t.Helper()
	command, err := run.NewCommand([]string{name}, run.CommandConfig{})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	return run.Config{
		Command: command, Source: run.Source{Lists: []input.Group{{inputs}}}, Jobs: len(inputs), Lookahead: len(inputs),
		Sink: output.NewSink(out, out, nil, [2]bool{}), Spool: output.NewSpool(dir), Meter: &progress.Meter{},
	}
}

// TestMain makes the test program the watching process that a run starts, as the main function
// of stint does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == watcher.Arg {
		if err := watcher.Main(os.Args[2:]); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}
