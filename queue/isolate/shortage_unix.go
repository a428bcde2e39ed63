//go:build unix

package isolate

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/stintgo/stint/queue"
)

// shortages are the errors of what comes before a program runs that are this
// process's or the system's, and what to do about each. A program that needs too much
// itself meets them after its start, where they are its own.
var shortages = []struct { //nolint:gochecknoglobals // a table
	errno  syscall.Errno
	remedy string
}{
	{syscall.EMFILE, "raise this process's limit on open files (ulimit -n), or run fewer tasks at once"},
	{syscall.ENFILE, "raise the system's limit on open files (sysctl fs.file-max), or run fewer tasks at once"},
	{syscall.EAGAIN, "raise the limit on processes (ulimit -u, pids.max of the cgroup), or run fewer tasks at once"},
	{syscall.ENOMEM, "free memory, or run fewer tasks at once"},
	{syscall.ENOSPC, "make room on the disk"},
	{syscall.EDQUOT, "make room in the quota of this user on the disk"},
}

// attribute makes a [queue.Shortage] of the error of an attempt whose program did not
// start, if the worker is what lacks something.
func attribute(err error) error {
	for _, s := range shortages {
		if errors.Is(err, s.errno) {
			return queue.Shortage(fmt.Errorf("%w: %s", err, s.remedy))
		}
	}
	return err
}
