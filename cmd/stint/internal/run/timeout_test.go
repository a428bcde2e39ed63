//go:build linux

package run_test

import (
	"os"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/internal/proc"
)

// A job that ends just as its timer expires has ended in time: it gets no signal, and its
// status counts.
func TestTimeout_EndedInTime(t *testing.T) {
	p, err := proc.Start(&proc.Spec{
		Path: "/bin/sh", Args: []string{"sh", "-c", "exit 0"},
		Env: os.Environ(), Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		t.Fatal(err)
	}
	if run.ExpireAfterEnd(p) {
		t.Error("it has timed out")
	}
}
