//go:build linux

package isolate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/retry"
)

// An error of a start that is due to the worker is a shortage with a remedy; one that is
// due to the command is a failure, permanent if it would occur in every attempt.
func TestC2_ErrorsOfAStart(t *testing.T) {
	for _, test := range []struct {
		errno            syscall.Errno
		short, permanent bool
	}{
		{errno: syscall.EMFILE, short: true},
		{errno: syscall.ENFILE, short: true},
		{errno: syscall.EAGAIN, short: true},
		{errno: syscall.ENOMEM, short: true},
		{errno: syscall.E2BIG, permanent: true},
		{errno: syscall.ENOENT, permanent: true},
		{errno: syscall.EACCES, permanent: true},
		{errno: syscall.ENOEXEC, permanent: true},
		{errno: syscall.ETXTBSY},
		{errno: syscall.EIO},
	} {
		restore := isolate.FailStarts(fmt.Errorf("start: %w", test.errno))
		_, command := run(t.Context(), isolate.Config{}, sh("true"))
		handler := plain.Run(t.Context(), &queue.Attempt{Task: task()})
		restore()
		for name, err := range map[string]error{"command": command, "handler": handler} {
			if !errors.Is(err, test.errno) || queue.IsShortage(err) != test.short {
				t.Errorf("%s, %v: %v is a shortage: %t", name, test.errno, err, queue.IsShortage(err))
			}
			if test.short && !strings.Contains(err.Error(), "or run fewer tasks at once") {
				t.Errorf("%s, %v: %q has no remedy", name, test.errno, err)
			}
		}
		if retry.IsPermanent(command) != test.permanent {
			t.Errorf("%v: %v is permanent: %t", test.errno, command, retry.IsPermanent(command))
		}
	}
}

// A log that cannot be opened because of missing disk space or descriptors is a shortage;
// every other error of Log is a failure.
func TestC2_LogThatCannotBeOpened(t *testing.T) {
	for errno, short := range map[syscall.Errno]bool{
		syscall.ENOSPC: true, syscall.EDQUOT: true, syscall.EMFILE: true, syscall.EACCES: false, syscall.EIO: false,
	} {
		cfg := isolate.Config{Log: func(context.Context, *queue.Task) (io.WriteCloser, error) {
			return nil, &os.PathError{Op: "open", Path: "log", Err: errno}
		}}
		if _, err := run(t.Context(), cfg, sh("true")); !errors.Is(err, errno) || queue.IsShortage(err) != short {
			t.Errorf("%v: %v is a shortage: %t, want %t", errno, err, queue.IsShortage(err), short)
		}
	}
}

// Without descriptors every step of a start fails with a shortage, and when there are
// some again, attempts succeed.
func TestC2_NoDescriptors(t *testing.T) {
	if _, err := run(t.Context(), isolate.Config{}, sh("true")); err != nil { // this starts the watcher
		t.Fatal(err)
	}
	var had unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &had); err != nil {
		t.Fatal(err)
	}
	last, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = last.Close() }()
	stdin := sh("cat")
	stdin.Stdin = []byte("x")
	for spare := range uint64(12) {
		limit := unix.Rlimit{Cur: uint64(last.Fd()) + 1 + spare, Max: had.Max}
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
			t.Fatal(err)
		}
		_, command := run(t.Context(), isolate.Config{}, stdin)
		handler := plain.Run(t.Context(), &queue.Attempt{Task: task()})
		if err := unix.Prlimit(0, unix.RLIMIT_NOFILE, &had, nil); err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{"command": command, "handler": handler} {
			if err != nil && !queue.IsShortage(err) || err == nil && spare == 0 {
				t.Errorf("with %d descriptors to spare, the %s says %v", spare, name, err)
			}
		}
		if spare == 11 && (command != nil || handler != nil) {
			t.Errorf("with %d descriptors: %v, %v", spare, command, handler)
		}
	}
}
