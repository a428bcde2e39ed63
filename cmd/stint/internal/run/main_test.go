package run_test

import (
	"os"
	"testing"

	"github.com/stintgo/stint/internal/watcher"
)

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
