package joblog_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/joblog"
	"github.com/stintgo/stint/internal/seeded"
)

const header = "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

func open(t *testing.T, path string, cfg joblog.Config) *joblog.Log {
	t.Helper()
	l, err := joblog.Open(path, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func write(t *testing.T, path string, records ...joblog.Record) {
	t.Helper()
	l := open(t, path, joblog.Config{Resume: true})
	for i := range records {
		if err := l.Append(&records[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
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

func TestAppend_Columns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path,
		joblog.Record{Seq: 1, Start: time.UnixMilli(1700000000007), Runtime: 1234567 * time.Microsecond, Command: "a\tb\nc"},
		joblog.Record{Seq: 12, Start: time.Unix(3, 0), Receive: 99, Exit: 3, Signal: syscall.SIGKILL, Command: "x"})
	want := header + "1\t:\t1700000000.007\t1.234\t0\t0\t0\t0\ta\tb\x00c\n12\t:\t3.000\t0.000\t0\t99\t3\t9\tx\n"
	if got := read(t, path); got != want {
		t.Errorf("log is\n%q, want\n%q", got, want)
	}
}

func TestDone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path,
		joblog.Record{Seq: 1, Command: "a\nb"}, joblog.Record{Seq: 2, Command: "x", Exit: 1},
		joblog.Record{Seq: 4, Command: "y", Exit: 1}, joblog.Record{Seq: 4, Command: "y"},
		joblog.Record{Seq: 5, Command: "z", Signal: 9})
	for _, row := range []struct {
		cfg  joblog.Config
		done string
	}{
		{joblog.Config{}, ""},
		{joblog.Config{Resume: true}, "1 2 4 5"},
		{joblog.Config{Resume: true, Failed: true}, "1 4"},
		{joblog.Config{Resume: true, Match: joblog.MatchCommand}, "1 2 4 5"},
	} {
		if !row.cfg.Resume {
			if _, err := joblog.Open(path, row.cfg); !errors.Is(err, joblog.ErrExists) {
				t.Errorf("a second run without resume: %v, want ErrExists", err)
			}
			continue
		}
		l := open(t, path, row.cfg)
		var got []string
		for i, command := range []string{"a\nb", "x", "new", "y", "z"} {
			done, err := l.Done(i+1, command)
			if err != nil {
				t.Errorf("%+v: job %d: %v", row.cfg, i+1, err)
			}
			if done {
				got = append(got, fmt.Sprint(i+1))
			}
		}
		if strings.Join(got, " ") != row.done {
			t.Errorf("%+v: done %v, want %s", row.cfg, got, row.done)
		}
		l.Close()
	}
}

func TestDone_ChangedListIsAnError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path, joblog.Record{Seq: 1, Command: "a"}, joblog.Record{Seq: 2, Command: "b"})
	l := open(t, path, joblog.Config{Resume: true})
	defer l.Close()
	if done, err := l.Done(1, "a"); !done || err != nil {
		t.Errorf("job 1: %v, %v", done, err)
	}
	if _, err := l.Done(2, "c"); !errors.Is(err, joblog.ErrChanged) || !strings.Contains(err.Error(), "job 2") {
		t.Errorf("job 2: %v, want ErrChanged that names it", err)
	}
}

func TestDone_ByCommandCountsRepeats(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	write(t, path,
		joblog.Record{Seq: 1, Command: "a"}, joblog.Record{Seq: 7, Command: "a"}, joblog.Record{Seq: 9, Command: "b"})
	l := open(t, path, joblog.Config{Resume: true, Match: joblog.MatchCommand})
	defer l.Close()
	var got []bool
	for i, command := range []string{"b", "a", "c", "a", "a", "b"} {
		done, err := l.Done(i+1, command)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, done)
	}
	if want := []bool{true, true, false, true, false, false}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("done = %v, want %v", got, want)
	}
}

// Lines with the same number and command are attempts of one job, of which the last counts.
func TestDone_ByCommandAttempts(t *testing.T) {
	failed := joblog.Record{Seq: 2, Command: "x", Exit: 1}
	ok, other := joblog.Record{Seq: 2, Command: "x"}, joblog.Record{Seq: 3, Command: "x"}
	for _, row := range []struct {
		log   []joblog.Record
		again bool
		done  int
	}{
		{[]joblog.Record{ok}, false, 1},
		{[]joblog.Record{ok, other}, false, 2},
		{[]joblog.Record{ok, other}, true, 2},
		{[]joblog.Record{failed, ok}, false, 1},
		{[]joblog.Record{failed, ok}, true, 1},
		{[]joblog.Record{failed, ok, other}, true, 2},
		{[]joblog.Record{failed, other}, false, 2},
		{[]joblog.Record{failed, other}, true, 1},
		{[]joblog.Record{failed, failed}, false, 1},
		{[]joblog.Record{failed, failed}, true, 0},
	} {
		path := filepath.Join(t.TempDir(), "log")
		write(t, path, row.log...)
		l := open(t, path, joblog.Config{Resume: true, Failed: row.again, Match: joblog.MatchCommand})
		got := 0
		for seq := 1; seq <= 3; seq++ {
			if done, err := l.Done(seq, "x"); err != nil {
				t.Fatal(err)
			} else if done {
				got++
			}
		}
		if got != row.done {
			t.Errorf("%+v: %d are done, want %d", row, got, row.done)
		}
		l.Close()
	}
}

// Of two jobs with one command the second may be logged first, as failed. The first is then skipped
// in its place, and once the second has run again, both are.
func TestDone_ByCommandOfEqualFailures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	second := joblog.Record{Seq: 2, Command: "x", Exit: 1}
	write(t, path, second)
	for _, want := range [][2]bool{{true, false}, {true, true}} {
		l := open(t, path, joblog.Config{Resume: true, Match: joblog.MatchCommand})
		var got [2]bool
		for i := range got {
			var err error
			if got[i], err = l.Done(i+1, "x"); err != nil {
				t.Fatal(err)
			}
		}
		if got != want {
			t.Errorf("done are %v, want %v", got, want)
		}
		if !got[1] {
			if err := l.Append(&second); err != nil {
				t.Fatal(err)
			}
		}
		l.Close()
	}
}

// Lists of few commands, each several times, are resumed in random order, with jobs that fail and
// jobs that do not end. The log has each job of the list at most once, a job that has succeeded does
// not run again, and in the end all jobs are done.
func TestModel_ByCommandInAnyOrder(t *testing.T) {
	rng := seeded.Rand(t)
	for range 30 {
		path := filepath.Join(t.TempDir(), "log")
		list := make([]string, 1+rng.IntN(12))
		for i := range list {
			list[i] = fmt.Sprint("c", rng.IntN(3))
		}
		const rounds = 8
		for round := range rounds {
			if rng.IntN(2) == 0 {
				rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			}
			again := rng.IntN(2) == 0
			ok, failed := byCommand(t, path, list)
			l := open(t, path, joblog.Config{Resume: true, Failed: again, Match: joblog.MatchCommand})
			var ended []joblog.Record
			skipped := map[string]int{}
			for i, command := range list {
				done, err := l.Done(i+1, command)
				switch {
				case err != nil:
					t.Fatal(err)
				case done:
					skipped[command]++
				case round >= rounds-2 || rng.IntN(2) == 0:
					ended = append(ended, joblog.Record{Seq: i + 1, Command: command, Exit: rng.IntN(2)})
				}
			}
			for _, command := range list {
				want := ok[command]
				if !again {
					want += failed[command]
				}
				if skipped[command] != want {
					t.Fatalf("%d jobs of %s are skipped, want %d", skipped[command], command, want)
				}
			}
			if round == rounds-1 && !again && len(ended) > 0 {
				t.Fatalf("after a run of all jobs, %v run again", ended)
			}
			rng.Shuffle(len(ended), func(i, j int) { ended[i], ended[j] = ended[j], ended[i] })
			for i := range ended {
				if err := l.Append(&ended[i]); err != nil {
					t.Fatal(err)
				}
			}
			l.Close()
		}
	}
}

// byCommand returns how many jobs of each command have succeeded and failed. No command has more
// jobs than in the list, and no job goes on after it has succeeded.
func byCommand(t *testing.T, path string, list []string) (ok, failed map[string]int) {
	t.Helper()
	last := map[string]string{} // the last status, by number and command
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(strings.TrimPrefix(string(text), header)) {
		cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		job := cells[0] + " " + cells[8]
		if last[job] == "0" {
			t.Fatalf("job %s has succeeded and was run again: %s", job, text)
		}
		last[job] = cells[6]
	}
	ok, failed = map[string]int{}, map[string]int{}
	for job, status := range last {
		_, command, _ := strings.Cut(job, " ")
		if status == "0" {
			ok[command]++
		} else {
			failed[command]++
		}
	}
	in := map[string]int{}
	for _, command := range list {
		in[command]++
	}
	for command, n := range in {
		if ok[command]+failed[command] > n {
			t.Fatalf("the log has %d jobs of %s, and the list %d: %s", ok[command]+failed[command], command, n, text)
		}
	}
	return ok, failed
}

// A log cut at any byte opens again, has lost at most the line that was cut, and
// continues as a valid log.
func TestOpen_TornAtEveryByte(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	write(t, path, joblog.Record{Seq: 1, Command: "one"}, joblog.Record{Seq: 2, Command: "two\n2"})
	whole := read(t, path)
	for cut := range len(whole) + 1 {
		torn := filepath.Join(dir, fmt.Sprint(cut))
		if err := os.WriteFile(torn, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		write(t, torn, joblog.Record{Seq: 3, Command: "three"})
		got, kept := read(t, torn), whole[:strings.LastIndexByte(whole[:cut], '\n')+1]
		if kept == "" {
			kept = header
		}
		rest, ok := strings.CutPrefix(got, kept)
		if !ok || !strings.HasPrefix(rest, "3\t") || strings.Count(rest, "\n") != 1 {
			t.Fatalf("cut at %d: log is %q", cut, got)
		}
	}
}

func TestOpen_GarbageLines(t *testing.T) {
	for _, row := range []struct{ name, text, says string }{
		{"zeros at the end are what a power failure can leave", header + "1\t:\t0\t0\t0\t0\t0\t0\ta\n\x00\x00\x00\n", ""},
		{"not a log", "#!/bin/sh\necho hello\n", "header"},
		{"a broken line in the middle", header + "1\t:\tx\n2\t:\t0\t0\t0\t0\t0\t0\ta\n", "line 2"},
		{"seq 0", header + "0\t:\t0\t0\t0\t0\t0\t0\ta\n2\t:\t0\t0\t0\t0\t0\t0\ta\n", "Seq"},
		{"exit", header + "1\t:\t0\t0\t0\t0\tx\t0\ta\n2\t:\t0\t0\t0\t0\t0\t0\ta\n", "Exitval"},
		{"signal", header + "1\t:\t0\t0\t0\t0\t0\t\ta\n2\t:\t0\t0\t0\t0\t0\t0\ta\n", "Signal"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := joblog.Open(path, joblog.Config{Resume: true})
		if row.says == "" {
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
				continue
			}
			l.Close()
			continue
		}
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%s: %v, want it to say %q", row.name, err, row.says)
		}
		if got := read(t, path); got != row.text {
			t.Errorf("%s: the file was changed to %q", row.name, got)
		}
	}
}

// GNU parallel pads numbers and header.
func TestOpen_LogOfGNUParallel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	text := "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n" +
		"1\t:\t1700000000.123\t     0.003\t0\t2\t0\t0\techo 1\n2\t:\t1700000000.124\t     0.002\t0\t2\t1\t0\techo 2\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	l := open(t, path, joblog.Config{Resume: true, Failed: true})
	defer l.Close()
	if done, err := l.Done(1, "echo 1"); !done || err != nil {
		t.Errorf("job 1: %v, %v", done, err)
	}
	if done, err := l.Done(2, "echo 2"); done || err != nil {
		t.Errorf("job 2, which failed: %v, %v", done, err)
	}
}

func TestOpen_LockedByAnotherRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	first := open(t, path, joblog.Config{})
	if _, err := joblog.Open(path, joblog.Config{Resume: true}); !errors.Is(err, joblog.ErrBusy) {
		t.Errorf("second Open: %v, want ErrBusy", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, path, joblog.Config{Resume: true}).Close()
}

func TestAppend_Concurrently(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := open(t, path, joblog.Config{})
	var wg sync.WaitGroup
	const writers, each = 8, 200
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := l.Append(&joblog.Record{Seq: w*each + i + 1, Command: strings.Repeat("c", i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = open(t, path, joblog.Config{Resume: true})
	defer l.Close()
	for seq := 1; seq <= writers*each; seq++ {
		if done, err := l.Done(seq, strings.Repeat("c", (seq-1)%each)); !done || err != nil {
			t.Fatalf("job %d: %v, %v", seq, done, err)
		}
	}
}

// Before is called before the lines are made durable.
func TestBefore_RunsBeforeTheSync(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	calls := 0
	l := open(t, path, joblog.Config{Before: func() error { calls++; return nil }})
	if err := l.Append(&joblog.Record{Seq: 1, Command: "a"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if calls == 0 {
		t.Error("Before was never called")
	}
	broken := errors.New("broken")
	l = open(t, path, joblog.Config{Resume: true, Before: func() error { return broken }})
	if err := l.Close(); !errors.Is(err, broken) {
		t.Errorf("Close = %v, want Before's error", err)
	}
}

// The name of a new log is made durable once; that of an existing log already is.
func TestOpen_NewNameIsDurable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	var synced []string
	cfg := joblog.Config{SyncDir: func(dir string) error {
		synced = append(synced, dir)
		return nil
	}}
	for range 2 {
		l := open(t, path, cfg)
		if err := l.Append(&joblog.Record{Seq: 1, Command: "x"}); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if len(synced) != 1 || synced[0] != filepath.Dir(path) {
			t.Errorf("synced %v, want %s once", synced, filepath.Dir(path))
		}
		cfg.Resume = true
	}
}

func TestAppend_AfterClose(t *testing.T) {
	l := open(t, filepath.Join(t.TempDir(), "log"), joblog.Config{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(&joblog.Record{Seq: 1}); err == nil {
		t.Error("a closed log took a line")
	}
}

// Open accepts or refuses any file without a panic; and a log that it wrote itself, cut
// anywhere and followed by anything, never reports a job under a wrong command as done.
func FuzzOpen(f *testing.F) {
	f.Add([]byte(header + "1\t:\t0\t0\t0\t0\t0\t0\ta\n"))
	f.Add([]byte(header))
	f.Add([]byte("Seq\tHost\t\n99999999999999999999\t\t\t\t\t\t\t\t\n\n"))
	f.Add([]byte{0, '\n', 0})
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		l, err := joblog.Open(path, joblog.Config{Resume: true})
		if err != nil {
			return
		}
		done, err := l.Done(1, "command")
		if done && !bytes.Contains(content, []byte("\tcommand\n")) {
			t.Errorf("job 1 is done (%v) by %q", err, content)
		}
		l.Close()
	})
}

// A random log, cut at a random place and resumed again and again, always has exactly the
// jobs whose lines are complete.
func TestModel_RandomCuts(t *testing.T) {
	rng := seeded.Rand(t)
	path := filepath.Join(t.TempDir(), "log")
	command := func(seq int) string { return strings.Repeat("\n\tx", seq%5) + fmt.Sprint(seq) }
	const jobs = 60
	have := map[int]bool{}
	for range 60 {
		l := open(t, path, joblog.Config{Resume: true})
		for seq := 1; seq <= jobs; seq++ {
			done, err := l.Done(seq, command(seq))
			if err != nil || done != have[seq] {
				t.Fatalf("job %d: done %v, %v; want %v", seq, done, err, have[seq])
			}
			if !done && rng.IntN(3) == 0 {
				if err := l.Append(&joblog.Record{Seq: seq, Command: command(seq)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		l.Close()
		whole := read(t, path)
		cut := len(whole) - rng.IntN(min(80, len(whole)))
		if err := os.Truncate(path, int64(cut)); err != nil {
			t.Fatal(err)
		}
		clear(have)
		lines := strings.SplitAfter(whole[:cut], "\n")
		for _, line := range lines[:len(lines)-1] {
			var seq int
			if _, err := fmt.Sscan(line, &seq); err == nil {
				have[seq] = true
			}
		}
	}
}
