//go:build linux

package isolate_test

import (
	"errors"
	"testing"

	"github.com/stintgo/stint/queue/isolate"
)

// Kill ends all groups at once, whatever signals they ignore.
func TestC5_Kill(t *testing.T) {
	path := file(t)
	ended := make(chan error)
	for range 2 {
		go func() {
			cmd := sh(`trap '' TERM; sleep 1000 & echo $$ $! >> "$0"; wait; wait`)
			cmd.Args = append(cmd.Args, path)
			_, err := run(t.Context(), isolate.Config{}, cmd)
			ended <- err
		}()
	}
	pids := awaitNumbers(t, path, 4)
	isolate.Kill()
	for range 2 {
		err := <-ended
		if exit, ok := errors.AsType[*isolate.ExitError](err); !ok || exit.Limit != isolate.LimitTask {
			t.Errorf("it ended with %v", err)
		}
	}
	for _, pid := range pids {
		if !gone(pid) {
			t.Errorf("process %d still runs", pid)
		}
	}
	isolate.Kill() // no group is left
}
