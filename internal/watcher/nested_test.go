//go:build linux

package watcher_test

import (
	"os"
	"testing"

	"github.com/stintgo/stint/internal/watcher"
)

// A process that is to watch others, and whose main function does not call Main, starts no watching
// process: it would run the same main function, and so on without end.
func TestStart_InAWatchingProcess(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"stint", watcher.Arg, "run"}
	var failed error
	if w := watcher.Start(watcher.Program, "run", nil, func(err error) { failed = err }); w != nil || failed == nil {
		w.Stop()
		t.Errorf("a watching process watches itself; error %v", failed)
	}
}
