//go:build linux

package main_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stintgo/stint/cmd/stint/internal/cli"
)

// asStint is the variable with which the test binary runs as stint, so that the tests
// start a program with the same build flags, such as -race.
const asStint = "STINT_TEST_AS_STINT"

func TestMain(m *testing.M) {
	becomeNobody()
	if os.Getenv(asStint) != "" {
		os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	catchIgnored()
	testscript.Main(m, map[string]func(){
		"stint": func() { os.Exit(cli.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) },
	})
}

// catchIgnored catches the signals of a terminal that the tests ignore because nohup or
// the & of a script has started them. A program inherits ignored signals, but starts with
// the default action for signals that its parent catches.
func catchIgnored() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// command returns a stint command that has not been started, in a new directory.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	// The race detector would sleep for a second at each exit.
	cmd.Env = append(os.Environ(), asStint+"=1", "LC_ALL=C.UTF-8", "GORACE=atexit_sleep_ms=0")
	cmd.Dir = t.TempDir()
	return cmd
}

// result is the output and exit status of a stint command.
type result struct {
	stdout, stderr string
	status         int // 128 and the signal's number for a signal, as shells count
}

// finish waits for cmd and returns its exit status.
func finish(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &exit):
		t.Fatal(err)
	}
	if ws := exit.Sys().(syscall.WaitStatus); ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return exit.ExitCode()
}

// runCmd runs cmd with the given standard input.
func runCmd(t *testing.T, cmd *exec.Cmd, stdin string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	status := finish(t, cmd)
	return result{stdout.String(), progressLine.ReplaceAllString(stderr.String(), ""), status}
}

// progressLine matches what a run reports every ten seconds. On a busy machine every run
// can take that long.
var progressLine = regexp.MustCompile(`(?m)^stint: \d+(/~?\d+)? done.*\n`)

// stint runs stint with the given standard input and arguments.
func stint(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return runCmd(t, command(t, args...), stdin)
}

// want checks a result. Standard error must contain stderr, and be empty if that is empty.
func (r result) want(t *testing.T, stdout, stderr string, status int) {
	t.Helper()
	if r.stdout != stdout {
		t.Errorf("standard output is\n%q, want\n%q", r.stdout, stdout)
	}
	if !strings.Contains(r.stderr, stderr) || stderr == "" && r.stderr != "" {
		t.Errorf("standard error is\n%s\nwant %q in it", r.stderr, stderr)
	}
	if r.status != status {
		t.Errorf("exit status %d, want %d", r.status, status)
	}
}

// fifo makes a named pipe, with which jobs and tests wait for each other.
func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// lines is a reader of a running program's output.
type lines struct {
	t *testing.T
	r io.Reader
	b []byte
}

// next waits for the next line.
func (l *lines) next() string {
	l.t.Helper()
	for {
		if i := bytes.IndexByte(l.b, '\n'); i >= 0 {
			line := string(l.b[:i])
			l.b = l.b[i+1:]
			return line
		}
		buf := make([]byte, 4096)
		n, err := l.r.Read(buf)
		if l.b = append(l.b, buf[:n]...); n == 0 && err != nil {
			l.t.Fatalf("waiting for a line: %v after %q", err, l.b)
		}
	}
}

// pid reads the next line as a process ID.
func (l *lines) pid() int {
	l.t.Helper()
	pid, err := strconv.Atoi(l.next())
	if err != nil {
		l.t.Fatal(err)
	}
	return pid
}

// events opens a fifo that jobs write lines to. It is open for writing too, so that it
// has no end while it has no other writers.
func events(t *testing.T, path string) *lines {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return &lines{t: t, r: f}
}

// start starts cmd and kills it at the end of the test.
func start(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Without effect if the test has waited for it.
		_ = cmd.Process.Kill()
	})
}

// startLines starts a program, and reads what it writes to its standard output.
func startLines(t *testing.T, cmd *exec.Cmd) *lines {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, cmd)
	return &lines{t: t, r: stdout}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
