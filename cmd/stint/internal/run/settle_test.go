package run_test

import (
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/run"
)

// A job that fails at the moment when the run is stopped has failed: it is counted once,
// and not as one that runs again.
func TestRetry_WhileStopping(t *testing.T) {
	if again, counted := run.RetryWhileStopping(); again || counted != 0 {
		t.Errorf("again %v, %d attempts counted; want neither", again, counted)
	}
}
