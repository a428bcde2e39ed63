package run_test

import (
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/halt"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/internal/proc"
)

// A job that fails at the moment when the run is stopped has failed: it is counted once,
// and not as one that runs again.
func TestRetry_WhileStopping(t *testing.T) {
	if again, counted := run.RetryWhileStopping(); again || counted != 0 {
		t.Errorf("again %v, %d attempts counted; want neither", again, counted)
	}
}

// The status of a halted run is that of the job which the rule counts, also if another
// job ends at the same time and sees the rule met first.
func TestHalt_StatusOfCountedJob(t *testing.T) {
	failed := proc.Status{Exit: 3}
	for text, want := range map[string]proc.Status{"now,fail=1": failed, "now,success=1": {}} {
		rule, err := halt.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		slow, fast := want, failed
		if want == failed {
			fast = proc.Status{}
		}
		if got := run.HaltStatus(rule, slow, fast); got == nil || *got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
