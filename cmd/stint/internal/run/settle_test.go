package run_test

import (
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/run"
)

// A job that was running when the run was stopped, and fails in that very
// moment, has failed: it neither disappears nor is counted as one that is to
// run again.
func TestRetry_WhileStopping(t *testing.T) {
	if again, counted := run.RetryWhileStopping(); again || counted != 0 {
		t.Errorf("again %v, %d attempts counted; want neither", again, counted)
	}
}
