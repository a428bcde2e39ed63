//go:build unix

package isolate //nolint:testpackage // it exports a seam

import (
	"github.com/stintgo/stint/internal/proc"
)

// FailStarts has every start of a process fail until restore is called.
func FailStarts(err error) (restore func()) {
	had := startProcess
	startProcess = func(*proc.Spec) (*proc.Process, error) { return nil, err }
	return func() { startProcess = had }
}
