package receiver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stintgo/stint/transfer/receiver"
)

// A child of TestE4_KillsLoseNothing is this test binary, started with these variables: the
// directory of the receiver, and before which change of a file it kills itself.
const (
	childDir   = "STINT_RECEIVER_DIR"
	childDies  = "STINT_RECEIVER_DIES"
	hookedFile = "hooked" // beside the directory: a line for each call of Finished
)

func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	dies, err := strconv.ParseInt(os.Getenv(childDies), 10, 64)
	if err == nil {
		err = serveAndDie(dir, dies)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// serveAndDie serves a receiver until the change of that number, and prints its address.
// If that change is a write, half of it is done.
func serveAndDie(dir string, dies int64) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	var changes atomic.Int64
	fault := func(op string, bytes int) (int, error) {
		if op == "torn" || changes.Add(1) < dies {
			if op == "torn" {
				_ = self.Kill()
				select {}
			}
			return 0, nil
		}
		if op == "write" {
			return bytes / 2, errors.New("torn")
		}
		_ = self.Kill()
		select {}
	}
	hooked, err := os.OpenFile(filepath.Join(filepath.Dir(dir), hookedFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	r, err := receiver.Open(dir, receiver.WithFault(receiver.Config{
		Finished: func(_ context.Context, u receiver.Upload) error {
			_, err := fmt.Fprintln(hooked, filepath.Base(u.Path))
			return err
		},
	}, fault))
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, r) //nolint:gosec // the test ends it
}
