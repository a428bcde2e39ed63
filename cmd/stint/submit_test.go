//go:build linux

package main_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/queue"
)

// Flags may follow a command that is one script. Those that follow the first of several
// words, or a --, are words of the command.
func TestC1_SubmitFlagsBehindTheCommand(t *testing.T) {
	s := serve(t)
	s.stint("pause", "--all").want(t, "all queues are paused\n", "", 0)
	for _, row := range []struct {
		args     []string
		script   string
		words    []string
		attempts int
		key      string
	}{
		{[]string{"--key", "k", "exit 3", "--retries", "4"}, "exit 3", nil, 5, "k"},
		{[]string{"exit 3", "--key=k", "--retries=4"}, "exit 3", nil, 5, "k"},
		{[]string{"exit 3", "--key", "k", "--"}, "exit 3", nil, 1, "k"},
		{[]string{"make", "--retries", "4"}, "", []string{"make", "--retries", "4"}, 1, ""},
		{[]string{"exit 3", "word", "--key"}, "", []string{"exit 3", "word", "--key"}, 1, ""},
		{[]string{"[", "-f", "x", "]"}, "", []string{"[", "-f", "x", "]"}, 1, ""},
		{[]string{"exit 3", "-"}, "", []string{"exit 3", "-"}, 1, ""},
		{[]string{"--", "exit 3", "--retries", "4"}, "", []string{"exit 3", "--retries", "4"}, 1, ""},
	} {
		task := s.task(s.submit(row.args...))
		if got := task.Command; got.Script != row.script || !slices.Equal(got.Args, row.words) || got.Dir != s.dir ||
			task.MaxAttempts != row.attempts || task.Key != row.key {
			t.Errorf("%q: %+v, %d attempts, key %q", row.args, got, task.MaxAttempts, task.Key)
		}
	}
	r := s.stint("submit", "exit 3", "--retrys", "0")
	r.want(t, "", "after \"exit 3\": unknown flag: --retrys", 125)
	r.want(t, "", "put -- before the command", 125)
	s.stint("submit", "exit 3", "--retries", "0", "word").want(t, "", `"word" follows it`, 125)
	s.stop()
}

// Standard input is limited by its own size, and the message names the file, the limit
// and what to do.
func TestC1_SubmitLimitsStandardInput(t *testing.T) {
	s := serve(t)
	const most = 1 << 20
	write(t, filepath.Join(s.dir, "fits"), strings.Repeat("x", most))
	id := s.submit("wc -c", "--stdin", "fits")
	s.stint("wait", id).want(t, "", "", 0)
	s.stint("logs", id).want(t, strconv.Itoa(most)+"\n", "", 0)
	write(t, filepath.Join(s.dir, "big"), strings.Repeat("x", most+1))
	r := s.stint("submit", "wc -c", "--stdin", "big")
	r.want(t, "", "--stdin big: it is longer than 1048576 bytes", 125)
	r.want(t, "", "have the command read a file, as in 'sort < FILE'", 125)
	r = runCmd(t, s.command("submit", "wc -c", "--stdin", "-"), strings.Repeat("x", most+1))
	r.want(t, "", "--stdin -: it is longer than 1048576 bytes", 125)
	s.stop()
}

// Standard input that does not end, and an output that is not read, do not keep signals from
// ending a command.
func TestC1_SignalsEndBlockedClients(t *testing.T) {
	s := serve(t)
	id := s.submit("yes | head -c 1000000")
	s.stint("wait", id).want(t, "", "", 0)
	pipe := fifo(t)
	for _, args := range [][]string{{"--stdin", "-"}, {"--stdin", pipe}} {
		cmd := s.command(append(append([]string{"submit"}, args...), "cat")...)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		start(t, cmd)
		if args[1] == pipe {
			if stdin, err = os.OpenFile(pipe, os.O_WRONLY, 0); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { stdin.Close() })
		}
		if _, err := stdin.Write(make([]byte, 100_000)); err != nil { // more than a pipe holds: it is being read
			t.Fatal(err)
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if status := finish(t, cmd); status != 143 {
			t.Errorf("submit %q ends with %d", args, status)
		}
	}
	logs := s.command("logs", id)
	startLines(t, logs).next() // it is printing, and nothing reads the rest
	var ended atomic.Bool
	var signals sync.WaitGroup
	signals.Go(func() {
		for !ended.Load() { // signals that are pending together are one
			_ = logs.Process.Signal(syscall.SIGTERM)
			runtime.Gosched()
		}
	})
	if _, err := logs.Process.Wait(); err != nil { // cmd.Wait would close the output
		t.Error(err)
	}
	ended.Store(true)
	signals.Wait()
	s.stop()
}

// Pause waits for the tasks that run if it is to, and counts those that have ended by it.
func TestC4_PauseWaits(t *testing.T) {
	s := serve(t)
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	id := s.submit("trap 'read line < " + gate + "; exit' TERM; echo > " + pipe + "; while :; do sleep 0.01; done")
	ev.next()
	s.stint("pause", id).want(t, "1 task running and asked to end; --wait waits until it has ended\n", "", 0)
	waits := s.command("pause", "--wait", id)
	out := startLines(t, waits)
	write(t, gate, "now\n")
	if line := out.next(); line != "1 task paused" {
		t.Errorf("pause --wait says %q", line)
	}
	if status := finish(t, waits); status != 0 {
		t.Errorf("pause --wait ends with %d", status)
	}
	if task := s.task(id); task.State != queue.Paused {
		t.Errorf("the task is %s after pause --wait", task.State)
	}
	s.stint("pause", "--all", "--wait").want(t, "", "running tasks of a paused queue continue", 125)
	s.stop()
}

// Cancel says that a task which runs is only asked to end, and waits if it is to.
func TestC4_CancelOfARunningTask(t *testing.T) {
	s := serve(t, "--kill-after", "1h")
	gate, gateOfOther, pipe := fifo(t), fifo(t), fifo(t)
	ev := events(t, pipe)
	running := s.submit("trap 'read line < " + gate + "; exit 0' TERM; echo > " + pipe +
		"; while :; do sleep 0.01; done")
	ev.next()
	waiting := s.submit("--after", running, "--", "true")
	s.stint("cancel", "--all").want(t,
		"1 task cancelled\n1 task running and asked to end; --wait waits until it has ended\n", "", 0)
	s.stint("cancel", running).want(t, "0 tasks cancelled\n", "has been asked to end already", 1)
	s.stint("pause", running).want(t, "0 tasks paused\n", "task "+running+" cannot be paused: it is being cancelled\n", 1)

	other := s.submit("trap 'echo > " + pipe + "; read line < " + gateOfOther + "; exit 0' TERM; echo > " + pipe +
		"; while :; do sleep 0.01; done")
	ev.next()
	wait := s.command("cancel", "--wait", other)
	out := startLines(t, wait)
	ev.next() // the command has SIGTERM, so the server has the order
	write(t, gate, "go\n")
	write(t, gateOfOther, "go\n")
	if line := out.next(); line != "1 task cancelled" {
		t.Errorf("it says %q", line)
	}
	if status := finish(t, wait); status != 0 {
		t.Errorf("it ends with %d", status)
	}
	s.stint("wait", running).want(t, "", ": cancelled\n", 130)
	for _, id := range []string{running, other, waiting} {
		if task := s.task(id); task.State != queue.Cancelled {
			t.Errorf("task %s is %s", id, task.State)
		}
	}
	s.stop()
}

// A time of day is its next occurrence on the clocks here; a date has the time here as
// well, unless it names a zone.
func TestC8_TimesOfDay(t *testing.T) {
	t.Setenv("TZ", "Asia/Tokyo")
	tokyo := time.FixedZone("JST", 9*60*60)
	s := serve(t)
	before := time.Now()
	for _, text := range []string{"06:00", "18:30:15", "00:00"} {
		at := s.task(s.submit("--at", text, "--", "true")).RunAt.In(tokyo)
		if got := at.Format(time.TimeOnly); !strings.HasPrefix(got, text) || at.Before(before) ||
			at.After(time.Now().Add(24*time.Hour)) {
			t.Errorf("the next %s is %s, at %s", text, at, before)
		}
	}
	want := time.Date(2126, 11, 24, 6, 0, 0, 0, tokyo)
	for _, text := range []string{"2126-11-24 06:00", "2126-11-24T06:00", "2126-11-23T21:00:00Z", "2126-11-24 06:00:00"} {
		if at := s.task(s.submit("--at", text, "--", "true")).RunAt; !at.Equal(want) {
			t.Errorf("%s is %s, want %s", text, at, want)
		}
	}
	s.stint("submit", "--at", "24:00", "true").want(t, "", "give a time, as in 06:00", 125)
	s.stop()
}

// The last lines of a log are printed without the lines before, and it can be followed
// from there.
func TestC4_TailOfALog(t *testing.T) {
	s := serve(t)
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	const many = 20_000 // more than a piece that is read at once
	id := s.submit("seq " + strconv.Itoa(many) + "; echo > " + pipe + "; read line < " + gate + "; printf 'a\nb'")
	ev.next()
	for s.stint("logs", "--tail", "1", id).stdout != "20000\n" { // it is on its way
	}
	s.stint("logs", "-n", "3", id).want(t, "19998\n19999\n20000\n", "", 0)
	s.stint("logs", "--tail", "0", id).want(t, "", "", 0)
	if r := s.stint("logs", "--tail", "19999", id); !strings.HasPrefix(r.stdout, "2\n3\n") {
		t.Errorf("it begins with %.20q", r.stdout)
	}
	for _, all := range []string{"20000", "20001", "1000000"} {
		if r := s.stint("logs", "--tail", all, id); !strings.HasPrefix(r.stdout, "1\n2\n") {
			t.Errorf("%s lines begin with %.20q", all, r.stdout)
		}
	}
	follow := s.command("logs", "-f", "--tail", "1", id)
	out := startLines(t, follow)
	if line := out.next(); line != "20000" {
		t.Errorf("it follows with %q", line)
	}
	write(t, gate, "go\n")
	if line := out.next(); line != "a" {
		t.Errorf("it goes on with %q", line)
	}
	if status := finish(t, follow); status != 0 {
		t.Errorf("it ends with %d", status)
	}
	s.stint("logs", "--tail", "2", id).want(t, "a\nb", "", 0)
	s.stint("logs", "--tail", "-1", id).want(t, "", "give a number of lines", 125)
	s.stop()
}

// --unique-for is sent with the name, and means nothing without one.
func TestC7_SubmitUniqueFor(t *testing.T) {
	s := serve(t)
	once := s.submit("--unique", "once", "--unique-for", "72h", "--", "true")
	if got := s.task(once).UniqueFor; got != 72*time.Hour {
		t.Errorf("its name is kept for %s", got)
	}
	s.stint("submit", "--unique-for", "1h", "true").want(t, "", "give that, too", 125)
	s.stint("submit", "--from", "in", "--unique-for", "1h").want(t, "", "give that, too", 125)
	s.stint("submit", "--unique", "u", "--unique-for", "9000h", "true").want(t, "", "at most 8784h", 125)
	s.stop()
}
