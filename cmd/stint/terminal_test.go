//go:build linux

package main_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// A job that uses the terminal is stopped by the kernel. The first such job is reported
// with a remedy; a time limit ends such jobs like others.
func TestTerminal_StoppedJobsAreReported(t *testing.T) {
	for name, row := range map[string]struct{ script, says string }{
		"reads":              {"read x < /dev/tty", "wants to read from the terminal"},
		"its child reads":    {"sh -c 'read x < /dev/tty'; true", "wants to read from the terminal"},
		"changes its set-up": {"stty -echo < /dev/tty", "wants to write to, or change, the terminal"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, terminal := pty(t)
			cmd := command(t, "run", "-j1", "--timeout", "300ms", "-n0", row.script, ":::", "a", "b")
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, w
			cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			start(t, cmd)
			w.Close()
			l := &lines{t: t, r: r}
			if got := l.next(); !strings.Contains(got, "job 1 has stopped") || !strings.Contains(got, row.says) ||
				!strings.Contains(got, "--stdin") {
				t.Errorf("stint says %q", got)
			}
			if got := l.next(); !strings.Contains(got, "2 of 2 jobs failed; first: job 1 (timed out after 300ms)") {
				t.Errorf("then %q", got)
			}
			if status := finish(t, cmd); status != 2 {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

// A list without words is refused; stint does not offer to read the inputs from the terminal.
func TestTerminal_EmptyListIsRefused(t *testing.T) {
	_, terminal := pty(t)
	var stderr strings.Builder
	cmd := command(t, "run", "echo", ":::")
	cmd.Stdin, cmd.Stderr = terminal, &stderr
	start(t, cmd)
	if status := finish(t, cmd); status != 125 || stderr.String() != "stint: ::: has no inputs after it\n" {
		t.Errorf("it ends with %d and says %q", status, stderr.String())
	}
}

// Ctrl-C says at once what stint waits for, and that a second one kills.
func TestTerminal_InterruptSaysWhatItWaitsFor(t *testing.T) {
	control, terminal := pty(t)
	pipe := fifo(t)
	ev := events(t, pipe)
	script := "trap 'echo trapped > " + pipe + "' INT; echo started > " + pipe + "; while :; do sleep 1000 & wait; done"
	cmd := command(t, "run", "-j2", "--progress", "none", "-n0", script, ":::", "a", "b")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	start(t, cmd)
	interrupt := func(word string) {
		for range 2 {
			if got := ev.next(); got != word {
				t.Fatalf("got %q, want %q", got, word)
			}
		}
		if _, err := control.WriteString("\x03"); err != nil {
			t.Fatal(err)
		}
	}
	interrupt("started")
	l := &lines{t: t, r: control}
	const want = "stint: interrupt: waiting for 2 jobs that run; a second Ctrl-C kills at once"
	if got := l.next(); !strings.Contains(got, want) {
		t.Errorf("stint says %q, want %q", got, want)
	}
	interrupt("trapped")
	if status := finish(t, cmd); status != 128+int(syscall.SIGINT) {
		t.Errorf("exit status %d", status)
	}
}

// Jobs that are stopped for other reasons are none of stint's business.
func TestTerminal_OtherStopsAreNotReported(t *testing.T) {
	stint(t, "", "run", "-q", "--timeout", "100ms", "-n0", "kill -STOP $$", ":::", "a").want(t, "", "", 1)
}
