//go:build linux

package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stintgo/stint/internal/seeded"
)

// logged counts the lines of each job in a job log, all of which must be whole.
func logged(t *testing.T, path string) map[int]int {
	t.Helper()
	got := map[int]int{}
	for i, line := range strings.SplitAfter(read(t, path), "\n") {
		switch cells := strings.Split(line, "\t"); {
		case line == "": // after the last
		case i == 0:
			if cells[0] != "Seq" {
				t.Fatalf("job log begins with %q", line)
			}
		case len(cells) < 9 || !strings.HasSuffix(line, "\n"):
			t.Fatalf("line %d of the job log is %q", i+1, line)
		default:
			seq, err := strconv.Atoi(cells[0])
			if err != nil {
				t.Fatal(err)
			}
			got[seq]++
		}
	}
	return got
}

func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return b.String()
}

// Killed at random moments and resumed until done, every job has had its effect,
// each job's output was written before its line, and no job ran again that had a
// line when stint was killed.
func TestResume_KilledAtRandomMoments(t *testing.T) {
	const jobs = 400
	rng := seeded.Rand(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "in"), numbers(jobs))
	ran := map[int]int{} // times each job had run when it got its line
	for round := 0; ; round++ {
		cmd := command(t, "run", "-j3", "--joblog", "log", "--resume", "-a", "in", "echo {} >> ran; echo out {}")
		cmd.Dir = dir
		out, err := os.OpenFile(filepath.Join(dir, "out"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = out
		defer out.Close()
		log := filepath.Join(dir, "log")
		status := killAt(t, cmd, log, fileSize(t, log)+int64(100+rng.IntN(4000)))
		checkRound(t, dir, ran)
		if status == 0 {
			t.Logf("done after %d kills", round)
			break
		}
	}
	times := counts(t, filepath.Join(dir, "ran"))
	for i := 1; i <= jobs; i++ {
		if times[i] == 0 {
			t.Errorf("job %d never ran", i)
		}
	}
	if got := logged(t, filepath.Join(dir, "log")); len(got) != jobs {
		t.Errorf("%d jobs in the log, want %d", len(got), jobs)
	}
}

// checkRound compares the log after a kill with what has run.
func checkRound(t *testing.T, dir string, ran map[int]int) {
	t.Helper()
	text := read(t, filepath.Join(dir, "log"))
	write(t, filepath.Join(dir, "whole"), text[:strings.LastIndexByte(text, '\n')+1])
	times, out := counts(t, filepath.Join(dir, "ran")), read(t, filepath.Join(dir, "out"))
	for seq, lines := range logged(t, filepath.Join(dir, "whole")) {
		if lines != 1 {
			t.Fatalf("job %d has %d lines in the log", seq, lines)
		}
		if !strings.Contains("\n"+out, fmt.Sprintf("\nout %d\n", seq)) {
			t.Errorf("job %d has a line, its output is missing", seq)
		}
		if before, ok := ran[seq]; ok && times[seq] != before {
			t.Errorf("job %d had a line and ran again: %d times, then %d", seq, before, times[seq])
		}
		ran[seq] = times[seq]
	}
}

// counts counts the numbers in a file.
func counts(t *testing.T, path string) map[int]int {
	t.Helper()
	got := map[int]int{}
	for word := range strings.FieldsSeq(read(t, path)) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		got[n]++
	}
	return got
}

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if os.IsNotExist(err) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func TestResume_LogInUse(t *testing.T) {
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	first := command(t, "run", "--joblog", "log", "-n0", "echo started > "+pipe+"; read x < "+gate, ":::", "a")
	start(t, first)
	ev.next()
	second := command(t, "run", "--joblog", "log", "--resume", "true", ":::", "a")
	second.Dir = first.Dir
	runCmd(t, second, "").want(t, "", "another run is writing this job log", 125)
	write(t, gate, "go\n")
	if status := finish(t, first); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
