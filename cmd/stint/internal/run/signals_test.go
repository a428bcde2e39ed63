package run_test

import (
	"fmt"
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

// While a process is starting, which may take long, a signal that suspends the run waits for that,
// and those that end it do not wait.
func TestSignal_WhileStarting(t *testing.T) {
	const tstp, interrupt = syscall.SIGTSTP, syscall.SIGINT
	if sig := run.HandleWhileStarting(tstp, tstp, interrupt, interrupt, interrupt); sig != interrupt {
		t.Errorf("the run ended by signal %d, want %d", sig, interrupt)
	}
}

// A shortage of the system ends the run, whose jobs have not failed then.
func TestStart_ShortageEndsTheRun(t *testing.T) {
	for errno, want := range map[syscall.Errno]bool{
		syscall.EAGAIN: true, syscall.ENOMEM: true, syscall.EMFILE: true, syscall.ENOSPC: true,
		syscall.ENOENT: false, syscall.EACCES: false, syscall.E2BIG: false,
	} {
		if got := run.EndsRun(fmt.Errorf("start x: %w", errno)); got != want {
			t.Errorf("%v ends the run: %t", errno, got)
		}
	}
}
