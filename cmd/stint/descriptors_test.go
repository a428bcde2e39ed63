//go:build linux

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// limited returns cmd with a limit on its open files.
func limited(t *testing.T, cmd *exec.Cmd, files int) *exec.Cmd {
	t.Helper()
	sh := command(t)
	script := fmt.Sprintf("ulimit -n %d; exec \"$@\"", files)
	sh.Args = append([]string{"sh", "-c", script, "sh", cmd.Path}, cmd.Args[1:]...)
	sh.Path, sh.Dir = "/bin/sh", cmd.Dir
	return sh
}

// As many jobs run at once as there are descriptors for, whatever the values of -j and of
// a later change.
func TestDescriptors_BoundTheJobs(t *testing.T) {
	pipe, gate := fifo(t), fifo(t)
	ev := events(t, pipe)
	// 64 are spare, and a job takes up to 5.
	run := command(t, "run", "-j50", "-n0", "--stdin", "/dev/null", "echo {%} > "+pipe+"; read x < "+gate)
	cmd := limited(t, run, 64+5*6)
	cmd.Stdin = strings.NewReader(numbers(60))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	start(t, cmd)
	var slots []string
	for range 6 {
		slots = append(slots, ev.next())
	}
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	holdOpen(t, gate)
	for range 60 - 6 {
		slots = append(slots, ev.next())
	}
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d: %s", status, stderr.String())
	}
	for _, slot := range slots {
		if strings.Compare(slot, "6") > 0 || len(slot) > 1 {
			t.Errorf("a job ran on slot %s; there is room for 6", slot)
		}
	}
}

// If files that stint has inherited use up its descriptors, no job can start. The run ends
// without logging or retrying any, and a resumed run does all of them.
func TestDescriptors_NoneLeft(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	flags := []string{"-j9", "--retries", "3", "--joblog", "log", "test -e resumed || exec sleep 1000", ":::"}
	flags = append(flags, strings.Fields(numbers(9))...)
	cmd := limited(t, command(t, append([]string{"run"}, flags...)...), 110)
	for range 110 - 3 - 9 {
		cmd.ExtraFiles = append(cmd.ExtraFiles, null)
	}
	runCmd(t, cmd, "").want(t, "", "too many open files; use a smaller -j, or allow more of them (ulimit -n)", 125)
	if got := logged(t, filepath.Join(cmd.Dir, "log")); len(got) != 0 {
		t.Errorf("job log has %v", got)
	}
	write(t, filepath.Join(cmd.Dir, "resumed"), "")
	resume := command(t, append([]string{"run", "--resume"}, flags...)...)
	resume.Dir = cmd.Dir
	runCmd(t, resume, "").want(t, "", "", 0)
	if got := logged(t, filepath.Join(cmd.Dir, "log")); len(got) != 9 {
		t.Errorf("job log has %v, want 9 jobs", got)
	}
}
