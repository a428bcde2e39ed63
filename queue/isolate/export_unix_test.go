//go:build unix

package isolate //nolint:testpackage // it exports a seam

import (
	"github.com/stintgo/stint/internal/proc"
)

// FailStarts makes every start of a process fail with err until restore is called.
func FailStarts(err error) (restore func()) {
	had := startProcess
	startProcess = func(*proc.Spec) (*proc.Process, error) { return nil, err }
	return func() { startProcess = had }
}
