//go:build linux

package run_test

import (
	"os"
	"testing"
	"testing/synctest"
	"time"

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

// The time for which a job is stopped with the run does not count for its timeout.
func TestTimeout_Suspended(t *testing.T) {
	for _, row := range []struct {
		suspended, runs time.Duration
		want            bool
	}{
		{0, 59 * time.Second, false},
		{0, 61 * time.Second, true},
		{time.Hour, 59 * time.Second, false},
		{time.Hour, 61 * time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			got, err := run.Suspended(func() (*proc.Process, error) {
				return proc.Start(&proc.Spec{
					Path: "/bin/sh", Args: []string{"sh", "-c", "exec sleep 1000"},
					Env: os.Environ(), Files: [3]*os.File{os.Stdin, os.Stdout, os.Stderr},
				})
			}, time.Minute, func() { time.Sleep(row.suspended) }, func() { time.Sleep(row.runs) })
			if err != nil || got != row.want {
				t.Errorf("suspended for %v and running for %v: timed out %v, %v", row.suspended, row.runs, got, err)
			}
		})
	}
}
