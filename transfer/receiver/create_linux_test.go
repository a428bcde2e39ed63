package receiver_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/transfer/receiver"
)

// openUnder returns the names of the open files of this process in a directory.
func openUnder(tb testing.TB, dir string) (names []string) {
	tb.Helper()
	const fds = "/proc/self/fd"
	for _, fd := range list(tb, fds) {
		name, err := os.Readlink(filepath.Join(fds, fd))
		if err == nil && strings.HasPrefix(name, dir+"/") {
			names = append(names, name)
		}
	}
	return names
}

// TestFullDisk_ClosesWhatItRemoves: an upload that could not be created keeps no file open,
// whose space would stay taken.
func TestFullDisk_ClosesWhatItRemoves(t *testing.T) {
	for _, op := range []string{"allocate", "write"} {
		s := open(t, receiver.WithFault(receiver.Config{}, func(is string, _ int) (int, error) {
			if is == op {
				return 0, syscall.ENOSPC
			}
			return 0, nil
		}))
		before := len(openUnder(t, s.dir)) // the lock
		for range 3 {
			s.want(s.tus("POST", s.url, nil, "Upload-Length", "1000"), 507)
		}
		if open := openUnder(t, s.dir); len(open) != before {
			t.Errorf("after creations that failed in %s, %q are open", op, open)
		}
		s.clean()
	}
}
