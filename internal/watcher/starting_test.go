//go:build linux

package watcher_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/internal/watcher"
)

// asStint makes the test binary act as a stint with jobs on two slots.
const asStint = "STINT_TEST_AS_STINT"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == watcher.Arg:
		if err := watcher.Main(os.Args[2:]); err != nil {
			os.Exit(1)
		}
	case os.Getenv(asStint) != "":
		beStint()
	default:
		os.Exit(m.Run())
	}
}

// jobs are the jobs that beStint starts: three of one run, and one of another.
var jobs = []struct {
	run  string
	seq  int
	kept bool // the watcher leaves it running when stint is killed
}{
	{"this", 1, false}, // started, but its group is not in the table yet
	{"this", 2, false}, // in the table
	{"this", 3, true},  // done, except for a process that it has left running
	{"other", 1, true},
}

// beStint starts the jobs and then blocks until it is killed. Job i reads descriptor
// 3+2i and writes what it reads to the next one.
func beStint() {
	for fd := 3; fd < 3+2*len(jobs); fd++ {
		syscall.CloseOnExec(fd)
	}
	// The name of the run is unique, in case the test runs twice at a time.
	name := func(run string) string { return run + strconv.Itoa(os.Getpid()) }
	w := watcher.Start(watcher.Program, name("this"), nil, func(err error) { panic(err) })
	w.Cell(1, jobs[0].seq)
	for i, job := range jobs {
		cmd := exec.Command("sh", "-c", "exec 3<&0; cat <&3 & wait")
		cmd.Env = proc.NewEnv(os.Environ(), name(job.run)).Append(nil, job.seq, 1)
		cmd.Stdin, cmd.Stdout = os.NewFile(uintptr(3+2*i), "in"), os.NewFile(uintptr(4+2*i), "out")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		if i == 1 {
			w.Cell(2, job.seq).Store(int32(cmd.Process.Pid))
		}
	}
	for { // select {} would be a deadlock once the watcher has been started
		_ = syscall.Pause()
	}
}

// A job that was being started when stint was killed is found by its environment.
// Processes that an earlier job has left running, and those of other runs, are not
// killed.
func TestMain_KillsJobsBeingStarted(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), watcher.Program)
	cmd.Env = append(os.Environ(), asStint+"=1", "GORACE=atexit_sleep_ms=0")
	ins, outs := make([]*os.File, len(jobs)), make([]*os.File, len(jobs))
	for i := range jobs {
		theirIn, in, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		out, theirOut, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		defer out.Close()
		ins[i], outs[i] = in, out
		cmd.ExtraFiles = append(cmd.ExtraFiles, theirIn, theirOut)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, f := range cmd.ExtraFiles {
		f.Close()
	}
	for i := range jobs {
		echo(t, i, ins[i], outs[i])
	}
	watching := watcherOf(t, cmd.Process.Pid)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	for cmdline := "x"; cmdline != ""; {
		cmdline = cmdlineOf(watching)
	}
	for i, job := range jobs {
		if job.kept {
			echo(t, i, ins[i], outs[i])
			continue
		}
		if n, err := outs[i].Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("job %d of run %s: read %d, %v; want its end", job.seq, job.run, n, err)
		}
	}
}

// echo checks that a job runs.
func echo(t *testing.T, i int, in, out *os.File) {
	t.Helper()
	if _, err := in.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Errorf("job %d of run %s: %v", jobs[i].seq, jobs[i].run, err)
	}
}

// watcherOf waits until a process has started a watcher, and returns its PID.
func watcherOf(t *testing.T, pid int) int {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, path := range tasks {
			children, _ := os.ReadFile(path)
			for word := range strings.FieldsSeq(string(children)) {
				if child, err := strconv.Atoi(word); err == nil && strings.Contains(cmdlineOf(child), watcher.Arg) {
					return child
				}
			}
		}
	}
	t.Fatal("there is no watching process")
	return 0
}

// cmdlineOf returns a process's command line, or nothing once it has ended.
func cmdlineOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(text)
}
