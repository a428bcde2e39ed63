//go:build linux

package main_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRun(t *testing.T) {
	for _, row := range []struct {
		name, stdin string
		args        []string
		stdout      string
	}{
		{"input appended", "a\nb\n", []string{"echo", "x"}, "x a\nx b\n"},
		{"placeholder", "a\nb\n", []string{"echo", "{}.{}"}, "a.a\nb.b\n"},
		{"path parts", "/d/e.f\n", []string{"echo", "{.}", "{/}", "{//}", "{/.}"}, "/d/e e.f /d e\n"},
		{"job and slot numbers", "a\nb\n", []string{"echo", "{#}", "{%}"}, "1 1\n2 1\n"},
		{"arguments", "", []string{"echo", ":::", "a", "b"}, "a\nb\n"},
		{"every combination", "", []string{"echo", "{1}{2}", ":::", "a", "b", ":::", "1", "2"}, "a1\na2\nb1\nb2\n"},
		{"blanks are not separators", " a  b \n", []string{"printf", "[%s]"}, "[ a  b ]"},
		{"NUL", "a\nb\x00c", []string{"-0", "printf", "[%s]"}, "[a\nb][c]"},
		{"another delimiter", "a,b", []string{"-d", ",", "echo"}, "a\nb\n"},
		{"fields", "a\tb\n", []string{"-C", "\\t", "echo", "{2}", "{1}"}, "b a\n"},
		{"fields appended", "a:b\n", []string{"-C", ":", "echo", "x"}, "x a b\n"},
		{"several inputs a job", "1\n2\n3\n4\n5\n", []string{"-n2", "echo"}, "1 2\n3 4\n5\n"},
		{"several inputs in one word", "1\n2\n", []string{"-n2", "echo", "f{}", "{2}{1}"}, "f1 f2 21\n"},
		{"several of a list", "", []string{"-n", "2", "echo", ":::", "a", "b", "c"}, "a b\nc\n"},
		{"another placeholder", "a\n", []string{"-I", "@", "echo", "{}", "@"}, "{} a\n"},
		{"each input is a command", "echo $((1+2))\necho 'a  b'|tr a x\n", nil, "3\nx  b\n"},
		{"one word with shell syntax", "a b\n", []string{"echo {} | tr a x"}, "x b\n"},
		{
			"shell quotes inputs", "$(echo hacked); it's\n",
			[]string{"--shell", "printf", "'[%s]'", "{}"},
			"[$(echo hacked); it's]",
		},
		{"no shell", "a\n", []string{"--shell=false", "echo", "{};", "$HOME"}, "a; $HOME\n"},
		{"flags of the command", "a\n", []string{"echo", "-n", "-j"}, "-j a"},
		{"double dash", "a\n", []string{"--", "echo", "-j"}, "-j a\n"},
		{"no input", "", []string{"echo"}, ""},
		{"blank lines", "\n\na\n\n", []string{"echo"}, "a\n"},
		{"environment", "a\nb\n", []string{"-n0", "echo $STINT_SEQ.$STINT_SLOT"}, "1.1\n2.1\n"},
		{"standard input is empty", "a\nb\n", []string{"-n0", "cat"}, ""},
		{"tag", "a\nb\n", []string{"--tag", "-n0", "printf 'x\\ny'"}, "a\tx\na\ty\nb\tx\nb\ty\n"},
		{"line buffer", "a\nb\n", []string{"--line-buffer", "--tag", "-n0", "printf 'x\\ny'"}, "a\tx\na\ty\nb\tx\nb\ty\n"},
		{"ungrouped", "a\nb\n", []string{"-u", "echo"}, "a\nb\n"},
		{
			"dry run", "a b\nc\n",
			[]string{"--dry-run", "rm", "-r", "--", "{}", "{%}"},
			"rm -r -- 'a b' '{%}'\nrm -r -- c '{%}'\n",
		},
		{"dry run of a script", "a b\n", []string{"--dry-run", "rm {} | wc"}, "rm 'a b' | wc\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			stint(t, row.stdin, append([]string{"run", "-j1"}, row.args...)...).want(t, row.stdout, "", 0)
		})
	}
}

func TestRun_ExitStatus(t *testing.T) {
	for _, row := range []struct {
		name, stdin, args, stderr string
		status                    int
	}{
		{"all good", "0\n0\n", "exit {}", "", 0},
		{"two fail", "0\n3\n9\n", "exit {}", "2 of 3 jobs failed; first: job 2 (exit status 3): exit 3", 2},
		{"quiet", "1\n", "-q|exit {}", "", 1},
		{"101 fail", strings.Repeat("1\n", 101), "--shell=false|false", "101 of 101", 101},
		{"102 fail", strings.Repeat("1\n", 102), "--shell=false|false", "102 of 102", 101},
		{"ended by a signal", "9\n", "kill -{} $$", "job 1 (ended by a signal: killed)", 1},
		{"no such program", "a\nb\n", "no-such-program", "no-such-program: executable file not found", 127},
		{"a script and a word", "a\n", "echo 1; echo 2|-n0", "without a shell: write one word, or give --shell", 127},
		{"with an input", "a\n", "echo {}|-n0", "job 1: echo a: executable file not found in $PATH; a command of several", 1},
		{"not executable", "a\n", "/dev/null|x", "permission denied", 126},
		{"program from the input", "true\nno-such\n", "{}|x", "job 2: no-such: executable file not found", 1},
		{"unknown priority", "high\nurgent\n", "--priority|{}|true", `unknown priority "urgent": use lowest`, 1},
		{"a control sequence", "a\x1b[1mb\n", "-C| |echo {2}", "input 1 (a?[1mb): no such field", 1},
		{"missing field", "a b\nc\n", "-C| |echo {2}", "input 2 (c): no such field: the command asks for {2}", 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			r := stint(t, row.stdin, append([]string{"run", "-j1"}, strings.Split(row.args, "|")...)...)
			r.stdout = ""
			r.want(t, "", row.stderr, row.status)
		})
	}
}

// A list that is wrong throughout is one message and a number, also in a dry run.
func TestRun_ManyBadInputs(t *testing.T) {
	for _, flag := range []string{"-j1", "--dry-run"} {
		r := stint(t, strings.Repeat("no comma\n", 150), "run", "-q", flag, "-C", ",", "echo", "{2}")
		r.want(t, "", "stint: input 1 (no comma): no such field: the command asks for {2}, the input has 1\n"+
			"stint: 150 inputs in all could not be made into jobs\n", 101)
		if n := strings.Count(r.stderr, "\n"); n != 2 {
			t.Errorf("%d lines on standard error, want 2", n)
		}
	}
}

// An input that ends the run ends a dry run, too, after all commands of the inputs before.
func TestRun_DryRunUntilAnInputThatEndsIt(t *testing.T) {
	var in, want strings.Builder
	for i := range 3000 {
		fmt.Fprintln(&in, i)
		fmt.Fprintln(&want, "echo", i)
	}
	r := stint(t, in.String()+"x\x00y\n", "run", "--dry-run", "echo")
	r.want(t, want.String(), "read inputs: ", 125)
}

// Messages about a job show the beginning of a long command, in whole
// characters.
func TestRun_LongCommandsAreShortenedInMessages(t *testing.T) {
	r := stint(t, strings.Repeat("é", 100_000), "run", "true")
	r.want(t, "", "argument list too long: use a smaller -n, or pass the input in a file): true ", 1)
	r.want(t, "", "é…\n", 1)
	if len(r.stderr) > 1000 || !utf8.ValidString(r.stderr) {
		t.Errorf("%d bytes on standard error: %.500q", len(r.stderr), r.stderr)
	}
}

// What cannot work is refused before anything runs, with what to do instead.
func TestRun_UsageErrors(t *testing.T) {
	for _, row := range []struct{ args, says string }{
		{"--nonsense|x", "unknown flag: --nonsense; see stint run --help"},
		{"-j|x|true", "number of jobs \"x\": give a number"},
		{"-j|@/no/such/file|true", "/no/such/file"},
		{"-j1|-P2|true", "another name of -j"},
		{"-d|ab|true", "give one ASCII character"},
		{"-0|-d|,|true", "use one"},
		{"-C|((|true", "column separator"},
		{"-n|-1|true", "--max-args is negative: give 0 or more"},
		{"-n|2", "-n needs a command"},
		{"-n|2|-C|,|true", "use one of them"},
		{"-n|2|true|:::|a|:::|b", "-n takes inputs from one list"},
		{"true|:::", "::: has no inputs after it"},
		{"-a|x|true|:::|a", "use one of them"},
		{"-a|/no/such/file|true", "inputs: open /no/such/file: no such file or directory"},
		{"true|::::|/no/such/file|:::|a", "inputs: open /no/such/file: no such file or directory"},
		{"--rate|fast|true", "invalid rate \"fast\""},
		{"--rate|0/s|true", "--rate 0/s would start nothing: give more, as in 5/s"},
		{"--rate|0.0|true", "--rate 0.0 would start nothing"},
		{"--rate|0x/s|true", "invalid rate \"0x/s\""},
		{"--delay|5x|true", "give a time, as in 500ms, 5s or 1m30s, or a number of seconds"},
		{"--delay|NaN|true", "give a time"},
		{"--timeout|1e300|true", "give a time"},
		{"--timeout|-1|true", "--timeout is negative"},
		{"-a|/|true", "inputs: / is a directory; for its files, write: find DIR"},
		{"-j|@nofile|true", "-j @nofile: stat nofile: no such file or directory; the file is to say how many"},
		{"--memfree|lots|true", "--memfree: size \"lots\": give bytes, with K, M, G or T"},
		{"--retries|-1|true", "--retries -1: give a number from 0 to 1000000000"},
		{"--retries|9223372036854775807|true", "--retries 9223372036854775807: give a number from 0 to 1000000000"},
		{"--timeout|-1s|true", "--timeout is negative"},
		{"--halt|now|true", "now,fail=1"},
		{"--key-jobs|2|true", "--key-jobs needs --key"},
		{"--resume|true", "--resume needs --joblog"},
		{"--joblog|log|--resume|--resume-by|name|true", "--resume-by"},
		{
			"--joblog|/dev/null|true",
			"job log /dev/null: not a regular file, which it must be to be resumed from; name another file",
		},
		{
			"--joblog|/no/such/dir/log|true",
			"job log: open /no/such/dir/log: no such file or directory; name another file with --joblog",
		},
		{"--group|-u|true", "exclude each other"},
		{"-k|--line-buffer|true", "use one"},
		{"--tag|-u|true", "--tag"},
		{"--stdin|-|true", "-a FILE"},
		{"--progress|loud|true", "auto, bar, plain, json or none"},
		{"--lookahead|0|true", "--lookahead is 0"},
		{"--load|0|true", "--load must be above 0"},
		{"--load|NaN|true", "--load must be above 0"},
		{"--key|{}|--key-jobs|0|true", "--key-jobs 0 would start nothing"},
		{"--bar|--progress|json|true", "--bar is another name of --progress bar"},
		{"--joblog|log|--resume-by|command|true", "give --resume, too"},
		{"--retry-delay|1s|true", "give --retries, too"},
		{"--retries|1|--retry-delay|-1s|true", "--retry-delay is negative: give 0 or more"},
		{
			"--tmpdir|/no/such/dir|true",
			"--tmpdir: stat /no/such/dir: no such file or directory; name a directory in which this user may write",
		},
		{"--tmpdir|/dev/null|true", "--tmpdir: /dev/null is not a directory; name a directory in which"},
		{"--tmpdir|/proc|true", "keep output in /proc: open /proc/"}, // as one without permission is for other users
		{"-I||true", "--replace is empty: give TEXT"},
	} {
		t.Run(row.args, func(t *testing.T) {
			t.Parallel()
			stint(t, "a\n", append([]string{"run"}, strings.Split(row.args, "|")...)...).want(t, "", row.says, 125)
		})
	}
}

func TestRun_AllProblemsAtOnce(t *testing.T) {
	r := stint(t, "", "run", "-j", "x", "--halt", "y", "--rate", "z", "true")
	for _, says := range []string{"number of jobs", "halt rule", "--rate"} {
		r.want(t, "", says, 125)
	}
}

// Higher tiers first, each in the order of the input; the first job starts at
// once, before the rest has been read.
func TestRun_PriorityAndKeyFromFields(t *testing.T) {
	in := "low,l1,low\nnormal,n1,0\nhigh,h1,high\nlow,l2,-1\nhigh,h2,+1\ncritical,c,critical\n"
	gate, pipe := fifo(t), fifo(t)
	cmd := command(t, "run", "-j1", "-C", ",", "--priority", "{3}", "--key", "{1}", "--lookahead", "100",
		"echo {2}; test {1} != hold || { echo > "+pipe+"; read x < "+gate+"; }")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var stdout strings.Builder
	cmd.Stdin, cmd.Stdout = r, &stdout
	start(t, cmd)
	// All of it fits into the look-ahead. Nothing is left in the pipe once it has been
	// read, and the blank line is read once the inputs before it wait to be run.
	ev := events(t, pipe)
	for i, part := range []string{"hold,x,lowest\n", in, "\n"} {
		if _, err := w.WriteString(part); err != nil {
			t.Fatal(err)
		}
		for left := 1; left > 0; {
			left = unread(t, r)
		}
		if i == 0 {
			ev.next()
		}
	}
	w.Close()
	write(t, gate, "go\n")
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	if got := strings.Fields(stdout.String()); !slices.Equal(got, []string{"x", "c", "h1", "h2", "n1", "l1", "l2"}) {
		t.Errorf("order is %v", got)
	}
}

// At most --key-jobs jobs of one key run at once, beside those of other keys. The empty key is a key like others.
func TestRun_KeyJobs(t *testing.T) {
	for _, key := range []string{"a", ""} {
		pipe, gate := fifo(t), fifo(t)
		ev := events(t, pipe)
		cmd := command(t, "run", "-j4", "-C", ",", "--key", "{1}", "--key-jobs", "1",
			"mkdir lock{1} || echo twice {1} > "+pipe+"; echo start {1} > "+pipe+"; read x < "+gate+"; rmdir lock{1}",
			":::", key+",1", key+",2", key+",3", "b,1")
		start(t, cmd)
		got := []string{ev.next(), ev.next()}
		slices.Sort(got)
		if !slices.Equal(got, []string{"start " + key, "start b"}) {
			t.Errorf("first started: %q, want one of each key", got)
		}
		holdOpen(t, gate)
		for range 2 {
			if got := ev.next(); got != "start "+key {
				t.Errorf("then %q", got)
			}
		}
		if status := finish(t, cmd); status != 0 {
			t.Errorf("exit status %d", status)
		}
	}
}

// A gate that stays closed starts nothing, and does not keep stint from ending.
func TestRun_ClosedGate(t *testing.T) {
	cmd := command(t, "run", "-t", "--memfree", "1000T", "true")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var stderr strings.Builder
	cmd.Stdin, cmd.Stderr = r, &stderr
	start(t, cmd)
	if _, err := w.WriteString("a\n"); err != nil {
		t.Fatal(err)
	}
	for unread(t, r) > 0 {
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if status := finish(t, cmd); status != 130 || strings.Contains(stderr.String(), "true a") {
		t.Errorf("exit status %d: %s", status, stderr.String())
	}
}

// As many run at once as -j says, and no more.
func TestRun_SixtyFourAtOnce(t *testing.T) {
	pipe, gate := fifo(t), fifo(t)
	ev := events(t, pipe)
	cmd := command(t, "run", "-j64", "-n0", "echo {%} > "+pipe+"; read x < "+gate)
	cmd.Stdin = strings.NewReader(numbers(70))
	start(t, cmd)
	seen := map[string]bool{}
	for range 64 {
		seen[ev.next()] = true
	}
	if len(seen) != 64 || !seen["1"] || !seen["64"] {
		t.Errorf("%d slots in use, want 1 to 64", len(seen))
	}
	holdOpen(t, gate)
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
}
