//go:build linux

package main_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// What GNU parallel 20221122 printed for the same arguments, with -k -j1.
func TestRun_ListsAsGNUParallelHasThem(t *testing.T) {
	for _, row := range []struct{ args, stdin, want string }{
		{"echo ::: a b :::+ c d", "", "a c|b d|"},
		{"echo ::: a b :::+ c d ::: 1 2", "", "a c 1|a c 2|b d 1|b d 2|"},
		{"echo ::: 1 2 ::: a b :::+ c d", "", "1 a c|1 b d|2 a c|2 b d|"},
		{"echo ::: a b :::+ c d :::+ e f", "", "a c e|b d f|"},
		{"echo {2}{1} ::: a b :::+ c d", "", "ca|db|"},
		{"echo :::: f1", "", "x|y|"},
		{"echo :::: f1 f2", "", "x 1|x 2|x 3|y 1|y 2|y 3|"},
		{"echo ::: a b :::: f1", "", "a x|a y|b x|b y|"},
		{"echo ::: a b ::::+ f1", "", "a x|b y|"},
		{"echo ::: a b ::::+ f1 ::: z", "", "a x z|b y z|"},
		{"echo [{1}][{2}] :::: gap ::::+ f2", "", "[p][1]|[][2]|[q][3]|"},
		{"-C , echo {1} {2} {3} ::: a,b :::+ c,d", "", "a b c|"},
		{"-C , echo {1}-{2}-{3} :::: csv ::: 8,9", "", "u-v-8|w-z-8|"},
		{"echo :::: - ::: 1", "s\nt\n", "s 1|t 1|"},
		{"echo :::: f1 ::::+ -", "s\nt\n", "x s|y t|"},
		{"echo :::: -", "s\nt\n", "s|t|"},
	} {
		cmd := command(t, append([]string{"run", "-j1"}, strings.Fields(row.args)...)...)
		for name, text := range map[string]string{"f1": "x\ny\n", "f2": "1\n2\n3\n", "gap": "p\n\nq\n", "csv": "u,v\nw,z\n"} {
			write(t, filepath.Join(cmd.Dir, name), text)
		}
		got := runCmd(t, cmd, row.stdin)
		if out := strings.ReplaceAll(got.stdout, "\n", "|"); out != row.want || got.stderr != "" || got.status != 0 {
			t.Errorf("%s prints %q, want %q; it says %q, exit status %d", row.args, out, row.want, got.stderr, got.status)
		}
	}
}

// More combinations than can be counted run like others, and the progress has the largest number
// as their total.
func TestRun_ListsOfMoreJobsThanCanBeCounted(t *testing.T) {
	args := []string{"run", "-q", "-j1", "--halt", "soon,done=1", "--progress", "json", "echo", "{1}{64}"}
	for range 64 {
		args = append(args, ":::", "a", "b")
	}
	stint(t, "", args...).want(t, "aa\n", `"total":9223372036854775807,`, 0)
}

func TestRun_ListsThatCannotBe(t *testing.T) {
	for args, says := range map[string]string{
		"touch made ::: a :::: missing":      "open missing: no such file or directory",
		"touch made :::: missing":            "open missing: no such file or directory",
		"touch made ::: a :::: .":            "inputs: . is a directory",
		"touch made :::: - -":                "standard input (-) is given for two lists",
		"--stdin - touch made :::: - :::+ a": "--stdin - : standard input gives the inputs already",
		"touch made :::+ a":                  ":::+ links its inputs to those of the list before it, and there is none",
		"touch made ::: a ::::+":             "::::+ has no inputs after it",
		"-a x touch made :::: y":             "-a and the lists after ::: or :::: give inputs: use one of them",
		"-n2 touch made ::: a :::+ b":        "-n takes inputs from one list",
	} {
		cmd := command(t, append([]string{"run"}, strings.Fields(args)...)...)
		runCmd(t, cmd, "").want(t, "", says, 125)
		if made, _ := filepath.Glob(filepath.Join(cmd.Dir, "made")); made != nil {
			t.Errorf("%s: a job has run", args)
		}
	}
}
