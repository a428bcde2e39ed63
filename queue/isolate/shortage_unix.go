//go:build unix

package isolate

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/stintgo/stint/queue"
)

// shortages are the errors by which a start fails because this process or the system
// lacks a resource, and the remedy for each. A program that exhausts a resource itself
// gets these errors after its start, where they do not reach this table.
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

// attribute returns err as a [queue.Shortage] with its remedy if it is in shortages, and
// err unchanged otherwise. err is the error of an attempt whose program did not start.
func attribute(err error) error {
	for _, s := range shortages {
		if errors.Is(err, s.errno) {
			return queue.Shortage(fmt.Errorf("%w: %s", err, s.remedy))
		}
	}
	return err
}
