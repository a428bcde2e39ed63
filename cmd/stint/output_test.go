//go:build linux

package main_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// A thousand jobs that each print many lines to both streams, slowly enough to
// overlap: no line is torn, no job's lines have another's between them.
func TestOutput_NeverMixed(t *testing.T) {
	const jobs, each = 1000, 60
	script := `f={}; i=0; while [ $i -lt 60 ]; do echo "$f $i"; echo "$f $i" >&2; i=$((i+1)); done`
	args := []string{"run", "-j8", "--progress", "none", script, ":::"}
	for i := range jobs {
		args = append(args, strconv.Itoa(i))
	}
	r := stint(t, "", args...)
	if r.status != 0 {
		t.Fatalf("exit status %d: %.500s", r.status, r.stderr)
	}
	for name, text := range map[string]string{"standard output": r.stdout, "standard error": r.stderr} {
		seen := map[string]bool{}
		all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(all) != jobs*each {
			t.Fatalf("%s: %d lines, want %d", name, len(all), jobs*each)
		}
		for i, line := range all {
			job, n, _ := strings.Cut(line, " ")
			if n != strconv.Itoa(i%each) || i%each == 0 && seen[job] || i%each > 0 && !strings.HasPrefix(all[i-1], job+" ") {
				t.Fatalf("%s: line %d is %q after %q", name, i, line, all[max(i-1, 0)])
			}
			seen[job] = true
		}
	}
}

// Line by line jobs may alternate, but every line is whole.
func TestOutput_LineBufferKeepsLinesWhole(t *testing.T) {
	script := `i=0; while [ $i -lt 200 ]; do printf {}-; printf "$i-"; echo {}; i=$((i+1)); done`
	r := stint(t, "", "run", "-j4", "--line-buffer", script, ":::", "a", "b", "c", "d", "e", "f")
	next := map[string]int{}
	for line := range strings.Lines(r.stdout) {
		job := line[:1]
		if want := fmt.Sprintf("%s-%d-%s\n", job, next[job], job); line != want {
			t.Fatalf("line %q, want %q", line, want)
		}
		next[job]++
	}
	for job, n := range next {
		if n != 200 || len(next) != 6 {
			t.Errorf("%d lines of %s, of %d jobs", n, job, len(next))
		}
	}
}

// A line appears while its job still runs.
func TestOutput_LineBufferIsLive(t *testing.T) {
	gate := fifo(t)
	cmd := command(t, "run", "--line-buffer", "-n0", "echo first; read x < "+gate+"; echo second", ":::", "a")
	l := startLines(t, cmd)
	if got := l.next(); got != "first" {
		t.Fatalf("got %q", got)
	}
	write(t, gate, "go\n")
	if got := l.next(); got != "second" {
		t.Errorf("got %q", got)
	}
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
}

// The first job ends last; its output still comes first, and that of the others
// is not lost meanwhile.
func TestOutput_KeepOrder(t *testing.T) {
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	cmd := command(t, "run", "-j2", "-k", "--joblog", "log",
		"if [ {} = 1 ]; then read x < "+gate+"; else echo {} > "+pipe+"; fi; echo out {}", ":::", "1", "2", "3", "4")
	var out strings.Builder
	cmd.Stdout = &out
	start(t, cmd)
	for range 3 {
		ev.next()
	}
	write(t, gate, "go\n")
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if out.String() != "out 1\nout 2\nout 3\nout 4\n" {
		t.Errorf("output is %q", out.String())
	}
}

// A job that prints 200 MB neither blocks nor fills memory.
func TestOutput_LargeDoesNotFillMemory(t *testing.T) {
	const size = 200 << 20
	for _, flags := range [][]string{{}, {"-k"}, {"--tag"}, {"--line-buffer"}} {
		cmd := command(t, append(append([]string{"run", "-j2"}, flags...),
			"-n0", "yes 0123456789012345678901234567890123456789 | head -c 104857600", ":::", "a", "b")...)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = w
		start(t, cmd)
		w.Close()
		var total, most int
		buf := make([]byte, 1<<20)
		for looked := 0; ; {
			n, err := r.Read(buf)
			if total += n; err != nil {
				break
			}
			if total-looked >= 8<<20 {
				looked, most = total, max(most, peakKiB(t, cmd.Process.Pid))
			}
		}
		r.Close()
		if status := finish(t, cmd); status != 0 || total < size {
			t.Errorf("%v: exit status %d, %d bytes, want %d", flags, status, total, size)
		}
		if most == 0 || most > 100<<10 { // the race detector takes several times what the program needs
			t.Errorf("%v: took %d MiB of memory", flags, most>>10)
		}
	}
}

// peakKiB returns the peak memory of a process. The value of wait is never below the
// memory of the test when it started the process.
func peakKiB(t *testing.T, pid int) (peak int) {
	t.Helper()
	for line := range strings.Lines(read(t, fmt.Sprintf("/proc/%d/status", pid))) {
		if _, err := fmt.Sscanf(line, "VmHWM: %d kB", &peak); err == nil {
			return peak
		}
	}
	return 0 // it has ended
}

// Large outputs go to disk while their jobs run, then wait for their turn in
// another file, twice over: every byte is in its place.
func TestOutput_KeepOrderOfLargeOutputs(t *testing.T) {
	gate, pipe := fifo(t), fifo(t)
	ev := events(t, pipe)
	script := `yes {}" out" | head -c 5000000; yes {}" error" | head -c 5000001 >&2; sleep 0.1; echo {}" end"; ` +
		`case {} in [58]) echo {} > ` + pipe + `;; esac; case {} in [15]) read x < ` + gate + `.{};; esac`
	cmd := command(t, "run", "-j2", "-k", "--progress", "none", script, ":::", "1", "2", "3", "4", "5", "6", "7", "8")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	for _, name := range []string{".1", ".5"} {
		if err := syscall.Mkfifo(gate+name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	start(t, cmd)
	for _, step := range []string{"1", "5"} {
		ev.next() // those between wait for this one's output
		write(t, gate+"."+step, "go\n")
	}
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	var wantOut, wantErr bytes.Buffer
	for job := 1; job <= 8; job++ {
		wantOut.Write(bytes.Repeat(fmt.Appendf(nil, "%d out\n", job), 1_000_000)[:5_000_000])
		fmt.Fprintf(&wantOut, "%d end\n", job)
		wantErr.Write(bytes.Repeat(fmt.Appendf(nil, "%d error\n", job), 1_000_000)[:5_000_001])
	}
	if !bytes.Equal(out.Bytes(), wantOut.Bytes()) || !bytes.Equal(errs.Bytes(), wantErr.Bytes()) {
		t.Errorf("%d and %d bytes, not those of the jobs in order (%d and %d)",
			out.Len(), errs.Len(), wantOut.Len(), wantErr.Len())
	}
}

// A process that a job leaves behind keeps writing; its output is in no other job's
// output, and the run does not wait for it.
func TestOutput_LeftBehindProcessesDontMix(t *testing.T) {
	gate, done := fifo(t), fifo(t)
	ev := events(t, done)
	cmd := command(t, "run", "-j1",
		"if [ {} = 1 ]; then { read x < "+gate+"; echo late; echo done > "+done+"; } & fi; "+
			"if [ {} = 2 ]; then echo go > "+gate+"; read x < "+gate+".2; fi; echo job {}", ":::", "1", "2")
	if err := syscall.Mkfifo(gate+".2", 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	cmd.Stdout = &out
	start(t, cmd)
	ev.next() // the late word has been written while job 2 runs
	write(t, gate+".2", "go\n")
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if out.String() != "job 1\njob 2\n" {
		t.Errorf("output is %q", out.String())
	}
}

// When the reader of standard output has gone, as head does, the run ends as
// quietly as others before a pipe: no more jobs start, those that run are ended,
// and the job log has no job whose output is missing.
func TestOutput_BrokenPipe(t *testing.T) {
	for name, row := range map[string]struct {
		flags  []string
		script string
	}{
		"groups":                {nil, "echo {}; [ {} = 0 ] || exec sleep 0.01"},
		"large outputs":         {nil, "yes | head -c 1000000; echo {}"},
		"lines":                 {[]string{"--line-buffer"}, "yes"},
		"ungrouped":             {[]string{"-u"}, "yes"},
		"ungrouped, of a shell": {[]string{"-u"}, "yes; exit 3"},
		"in order":              {[]string{"-k"}, "echo {}; [ {} = 0 ] || exec sleep 0.01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var inputs []string
			for i := range 3000 {
				inputs = append(inputs, strconv.Itoa(i))
			}
			cmd := command(t, append(append([]string{"run", "-j2", "--joblog", "log"}, row.flags...), row.script)...)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			var stderr strings.Builder
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(strings.Join(inputs, "\n")), w, &stderr
			start(t, cmd)
			w.Close()
			read := make([]byte, 2)
			if _, err := r.Read(read); err != nil {
				t.Fatal(err)
			}
			r.Close()
			if status := finish(t, cmd); status != 128+int(syscall.SIGPIPE) || stderr.String() != "" {
				t.Errorf("exit status %d, says %q", status, stderr.String())
			}
			if got := logged(t, filepath.Join(cmd.Dir, "log")); len(got) > 2000 {
				t.Errorf("%d jobs are logged, though no process has read their output", len(got))
			}
		})
	}
}

// At a limit on the size of files the job log stays sound.
func TestOutput_LimitOnJobLogSize(t *testing.T) {
	cmd := command(t, "run", "-j2", "--joblog", "log", "true", "{}", strings.Repeat("x", 100))
	limited := command(t)
	limited.Path, limited.Args = "/bin/sh", append([]string{"sh", "-c", "ulimit -f 2; exec \"$@\"", "sh"}, cmd.Args...)
	limited.Args[4] = cmd.Path
	in := strings.Repeat("y\n", 100)
	r := runCmd(t, limited, in)
	r.want(t, "", "file too large", 125)
	had := logged(t, limited.Dir+"/log")
	if len(had) == 0 || len(had) == 100 {
		t.Errorf("%d jobs in the log", len(had))
	}
	resume := command(t, append([]string{"run", "--resume"}, cmd.Args[2:]...)...)
	resume.Dir = limited.Dir
	runCmd(t, resume, in).want(t, "", "", 0)
	if got := logged(t, limited.Dir+"/log"); len(got) != 100 {
		t.Errorf("%d jobs in the log after resuming, want 100", len(got))
	}
}
