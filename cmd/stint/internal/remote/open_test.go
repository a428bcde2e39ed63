package remote_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/queue"
)

// Errors distinguish a server that cannot be reached from one that does not exist.
func TestC6_ExplainsWhatToDo(t *testing.T) {
	dial := func(errno syscall.Errno) error {
		return fmt.Errorf("%w: %w", queue.ErrUnavailable, &net.OpError{Op: "dial", Net: "unix", Err: errno})
	}
	for says, err := range map[string]error{
		"no server at data: start one with stint serve": dial(syscall.ENOENT),
		"no server at data: start one":                  dial(syscall.ECONNREFUSED),
		"the server at data is another user's":          dial(syscall.EACCES),
		queue.ErrFull.Error():                           queue.ErrFull,
	} {
		if got := remote.Explain(err, "data"); !strings.HasPrefix(got.Error(), says) {
			t.Errorf("%v is explained as %q, want %q", err, got, says)
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	says := fmt.Sprintf("no server at %s: start one with stint serve --dir %[1]s, which continues what is there, or", dir)
	if got := remote.Explain(dial(syscall.ENOENT), dir); !strings.HasPrefix(got.Error(), says) {
		t.Errorf("a directory with a store is explained as %q, want %q", got, says)
	}
	if err := remote.Explain(nil, "data"); err != nil {
		t.Error(err)
	}
}
