//go:build linux

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// The process that is opening the slots is stopped. A command that does not wait for long
// says so, with a remedy, also if its time is over before it has tried.
func TestB8_SemOfStoppedOpener(t *testing.T) {
	path := slotsFile(t)
	hold(t, path).release()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const making = 1<<40 - 1 // the byte that a process locks while it opens them
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: making, Len: 1}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--wait=20ms", "--wait=1ns", "--wait=0", "--try"} {
		stint(t, "", "sem", "--name", path, flag, "echo", "ran").
			want(t, "", "is opening the region makes no progress: let it run or end it; `fuser -v "+path+"`", 75)
	}
}

// Programs that would release the slot at once are refused, also where others turn
// into them, with what holds the slot for them. What only mentions them runs.
func TestB8_SemRefusesClosers(t *testing.T) {
	path := slotsFile(t)
	for _, words := range []string{
		"/usr/bin/ssh example.org", "nice ssh example.org", "nice -n 5 ssh example.org", "env -i A=b nice ssh example.org",
		"nohup slogin example.org",
	} {
		says := "let timeout hold it: timeout --foreground 0 " + words
		stint(t, "", append([]string{"sem", "--name", path}, strings.Fields(words)...)...).want(t, "", says, 125)
	}
	for _, words := range []string{"echo ssh", "env A=b echo ssh", "timeout --foreground 0 echo ssh"} {
		stint(t, "", append([]string{"sem", "--name", path}, strings.Fields(words)...)...).want(t, "ssh\n", "", 0)
	}
}

// The shell of a script stays, and so does the slot, also where it is one that turns
// into its last command. What ends with a backslash ends there.
func TestB8_SemScriptIsHeld(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("a shell that turns into its last command is missing: apt-get install bash: ", err)
	}
	dir := t.TempDir()
	if err := os.Symlink(bash, filepath.Join(dir, "sh")); err != nil {
		t.Fatal(err)
	}
	for _, script := range []string{"true; /bin/sh -c 'echo $PPID; exit 3'", "/bin/sh -c 'echo $PPID; exit 3' \\"} {
		cmd := sem(t, slotsFile(t), script)
		cmd.Env = append(cmd.Env, "PATH="+dir+":"+os.Getenv("PATH"))
		out := startLines(t, cmd)
		if got, want := out.next(), strconv.Itoa(cmd.Process.Pid); got != want {
			t.Errorf("%s: its last command has the parent %s, want the shell, %s", script, got, want)
		}
		if status := finish(t, cmd); status != 3 {
			t.Errorf("%s: exit status %d, want 3", script, status)
		}
	}
}

func TestB8_SemOfNothing(t *testing.T) {
	stint(t, "", "sem", "--name", slotsFile(t), "").want(t, "", "the command is empty", 125)
}
