// Package s3gateway starts Versity S3 Gateway (https://github.com/versity/versitygw), a server
// of another project, for tests.
package s3gateway

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/command"
)

// The credentials of the gateway, and its region.
const (
	Key    = "stint-test-key"
	Secret = "stint-test-secret-7f3a9c" //nolint:gosec // of a server that lives as long as a test
	Region = "us-east-1"
)

// Start starts a gateway with an empty bucket on a free port of the loopback interface. It
// returns its host and port, and the directory in which each object of the bucket is a file. The
// gateway ends with the test. Its program is built from the module in the directory program, which
// pins its version, and is kept in Go's build cache: the first call takes some minutes, and later
// ones about a second.
func Start(tb testing.TB, bucket string) (address, objects string) {
	tb.Helper()
	root, err := command.Root()
	if err != nil {
		tb.Fatal(err)
	}
	module := filepath.Join(root, "internal", "s3gateway", "program")
	program, err := command.Run(module, nil, "go", "tool", "-n", "versitygw")
	if err != nil {
		tb.Fatal(err)
	}
	// The gateway needs no directory of its own after the test, so that its files go first.
	data, sidecar := tb.TempDir(), tb.TempDir()
	objects = filepath.Join(data, bucket)
	if err := os.Mkdir(objects, 0o700); err != nil {
		tb.Fatal(err)
	}
	address = freeAddress(tb)
	cmd := exec.Command(program, //nolint:noctx // the cleanup kills it
		"--port", address, "--access", Key, "--secret", Secret, "--region", Region, "--quiet",
		"posix", "--sidecar", sidecar, data)
	log, err := os.Create(filepath.Join(tb.TempDir(), "log"))
	if err != nil {
		tb.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	err = cmd.Start()
	_ = log.Close() // the gateway has its own descriptor
	if err != nil {
		tb.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-ended
	})
	await(tb, address, log.Name(), ended)
	return address, objects
}

func freeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not block
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// await waits until a gateway accepts connections.
func await(tb testing.TB, address, log string, ended <-chan struct{}) {
	tb.Helper()
	const (
		patience = time.Minute
		every    = 10 * time.Millisecond
	)
	for late := time.After(patience); ; {
		c, err := net.Dial("tcp", address) //nolint:noctx // of this machine
		if err == nil {
			_ = c.Close()
			return
		}
		var why string
		select {
		case <-time.After(every):
			continue
		case <-ended:
			why = "has ended"
		case <-late:
			why = "does not answer"
		}
		said, _ := os.ReadFile(log) // only for the message
		tb.Fatalf("the S3 server %s: %v\n%s", why, err, said)
	}
}
