package run_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/retry"
)

// A signal that arrives while the run ends anyway is handled without a data race, and the run
// ends by it or without it.
func TestSignal_WhileEnding(t *testing.T) {
	cfg := config(t, "false", "1")
	cfg.Retry, cfg.KillAfter = retry.Policy{Attempts: 2, Base: time.Hour, Max: time.Hour}, time.Minute
	for range 200 {
		signals := make(chan os.Signal, 1)
		with := cfg
		with.Signal, with.Trace = signals, true
		with.Meter = &progress.Meter{}
		with.Say = func(msg string) {
			if msg == "false 1" {
				signals <- syscall.SIGTERM
			}
		}
		o := run.Do(&with)
		if o.Err != nil || o.Signal != syscall.SIGTERM || o.Failed > 1 {
			t.Fatalf("%+v", o)
		}
	}
}
