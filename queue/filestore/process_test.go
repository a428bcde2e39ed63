//go:build unix

package filestore_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/seeded"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/filestore"
)

// A test that needs another process starts its own binary with these set: what to
// do, and in which directory.
const (
	processDoes = "STINT_TEST_PROCESS"
	processDir  = "STINT_TEST_DIR"

	doOpen         = "open"
	doOpenAsNobody = "open as nobody"
	doWork         = "work"
	doRunQueue     = "run a queue"
	doRunBeside    = "run tasks beside each other"
	doStop         = "be stopped"
)

func TestMain(m *testing.M) {
	dir := os.Getenv(processDir)
	switch os.Getenv(processDoes) {
	case doOpen:
		tryOpen(dir)
	case doOpenAsNobody:
		if err := syscall.Setuid(65534); err != nil && os.Getuid() == 0 {
			fmt.Println(err)
			return
		}
		tryOpen(dir)
	case doWork:
		work(dir)
	case doRunQueue:
		runQueue(dir, 1)
	case doRunBeside:
		runQueue(dir, beside+2)
	case doStop:
		runStopped(dir)
	default:
		syscall.Umask(0o022) // stores refuse directories that a group may write to
		os.Exit(m.Run())
	}
}

// process is another one, which is yet to be started.
func process(t *testing.T, does, dir string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	// The race detector would sleep for a second at each exit.
	cmd.Env = append(os.Environ(), processDoes+"="+does, processDir+"="+dir, "GORACE=atexit_sleep_ms=0")
	cmd.Stderr = t.Output()
	return cmd
}

// tryOpen opens a store, and prints the error.
func tryOpen(dir string) {
	s, err := filestore.Open(dir, filestore.Config{})
	if err == nil {
		err = s.Close()
	}
	fmt.Println(errors.Is(err, queue.ErrUnavailable), err)
}

// refused checks the error of another process that opens a directory.
func refused(t *testing.T, does, dir, want string) {
	t.Helper()
	out, err := process(t, does, dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(out), "true ") || !strings.Contains(string(out), want) {
		t.Errorf("the error of the other process is %q; want an ErrUnavailable with %q", out, want)
	}
}

// A second process gets an error that names the process that has the directory. Looking
// that up must not release the lock of the first.
func TestC6_OneProcessAtATime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := openDir(t, dir)
	for range 2 {
		refused(t, doOpen, dir, fmt.Sprintf("process %d has it open", os.Getpid()))
		if _, err := filestore.Open(dir, filestore.Config{}); !errors.Is(err, queue.ErrUnavailable) {
			t.Errorf("opening it a second time in this process says %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := process(t, doOpen, dir).Output()
	if err != nil || string(out) != "false <nil>\n" {
		t.Errorf("after Close, another process prints %q, error %v; want no error", out, err)
	}
}

func TestC6_DirectoriesThatCannotBe(t *testing.T) {
	top := t.TempDir()
	for _, dir := range []string{top, filepath.Dir(top)} {
		if err := os.Chmod(dir, 0o755); err != nil { // for the user without rights
			t.Fatal(err)
		}
	}
	file, store, sealed := filepath.Join(top, "file"), filepath.Join(top, "store"), filepath.Join(top, "sealed")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := openDir(t, store).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(sealed, 0o500); err != nil {
		t.Fatal(err)
	}
	refused(t, doOpen, file, "there is a file in the way")
	refused(t, doOpen, filepath.Join(file, "below"), "there is a file in the way")
	says := "this user may not write there"
	if os.Getuid() == 0 { // otherwise the directories belong to this user
		says = "run it as that user, or choose another directory"
		refused(t, doOpenAsNobody, store, says)
	}
	refused(t, doOpenAsNobody, sealed, says)
	refused(t, doOpenAsNobody, filepath.Join(sealed, "below"), "this user may not write there")
}

// work has clients use a store without end, and prints what they write down.
func work(dir string) {
	s, err := filestore.Open(dir, filestore.Config{})
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	var clients sync.WaitGroup
	for i := range 8 {
		c := &client{
			store: s, name: fmt.Sprint("worker ", i), rng: rand.New(rand.NewPCG(rand.Uint64(), 0)),
			clock: time.Now, note: func(e entry) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Println(e)
			},
		}
		clients.Go(func() { panic(c.run(context.Background(), 1<<30)) })
	}
	clients.Wait()
}

// TestC6_Kill9 kills a process that works, again and again, at any moment.
func TestC6_Kill9(t *testing.T) {
	rng := seeded.Rand(t)
	dir := filepath.Join(t.TempDir(), "store")
	var ledger []entry
	for range 5 {
		ledger = append(ledger, killed(t, dir, 50+rng.IntN(500))...)
		s := openDir(t, dir)
		if err := errors.Join(verify(t.Context(), s, ledger, true), s.Close()); err != nil {
			t.Fatalf("after %d entries: %v", len(ledger), err)
		}
	}
	s := openDir(t, dir)
	if err := errors.Join(finish(t.Context(), s, time.Now()), s.Close()); err != nil {
		t.Error(err)
	}
	t.Logf("%d entries", len(ledger))
}

// killed returns what the clients of a process have written down that was killed
// after a number of entries.
func killed(t *testing.T, dir string, after int) (ledger []entry) {
	t.Helper()
	cmd := process(t, doWork, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			break // what is left of a line was not written down
		}
		if err != nil {
			t.Fatal(err)
		}
		e, err := parseEntry(line)
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if ledger = append(ledger, e); len(ledger) == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process ended with %v", err)
	}
	return ledger
}

// TestC6_OpenRefusesDirectoriesOfOthers: a store is not opened in a directory that other
// users own or may write to, and nothing is made there.
func TestC6_OpenRefusesDirectoriesOfOthers(t *testing.T) {
	open := func(mode os.FileMode, uid int) error {
		dir := filepath.Join(t.TempDir(), "store")
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode), os.Chown(dir, uid, -1)); err != nil {
			t.Logf("NOT SHOWN: this user cannot make such a directory: %v", err)
			return nil
		}
		s, err := filestore.Open(dir, filestore.Config{})
		if err == nil {
			return errors.Join(errors.New("it is opened"), s.Close())
		}
		if !errors.Is(err, queue.ErrUnavailable) || !strings.Contains(err.Error(), "controlled by others: "+dir) {
			return fmt.Errorf("it is refused with %w", err)
		}
		if made, err := os.ReadDir(dir); err != nil || len(made) > 0 {
			return fmt.Errorf("there are %v, %w", made, err)
		}
		return nil
	}
	for _, mode := range []os.FileMode{0o777, 0o770, 0o703} {
		if err := open(mode, os.Geteuid()); err != nil {
			t.Errorf("mode %v: %v", mode, err)
		}
	}
	if err := open(0o700, 65534); err != nil {
		t.Errorf("of another user: %v", err)
	}
}
