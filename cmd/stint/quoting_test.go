//go:build linux

package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// hostileNames are names of files that a shell would run a part of, were they
// not quoted, or quoted in the wrong place.
var hostileNames = []string{
	"x$(touch pwned)y", "b;touch pwned;", "'; touch pwned; '", `"; touch pwned; "`, "`touch pwned`",
	"a\ntouch pwned\n", "| touch pwned", "a[$(touch pwned)]", "a[$(touch pwned)]=1",
}

// pwned reports whether a command found in an input was run in the directory.
func pwned(t *testing.T, dir string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(dir, "pwned"))
	return err == nil
}

// A placeholder that quotes, a comment or anything else of the shell would take
// the quotes from is refused before anything starts, with a way out.
func TestRun_PlaceholdersInQuotesAreRefused(t *testing.T) {
	for _, row := range []struct{ script, says string }{
		{`cat "{}"`, "{} is inside double quotes"},
		{"cat '{}'", "{} is inside single quotes"},
		{`echo "a $(cat "{/.}")"`, "{/.} is inside double quotes"},
		{"echo `cat {1}`", "{1} is inside backquotes"},
		{"cat <<E\n{}\nE", "{} comes after a <<"},
		{"echo a # {}", "{} is in a comment"},
		{`echo \{}`, "{} has a backslash before it"},
		{"echo $((1+{}))", "{} is inside arithmetic"},
		{"echo ${1}", "{1} has a $ before it"},
		{"[[ {} -eq 1 ]]", "{} is evaluated as arithmetic"},
		{"test 1 -lt {}", "have expr check it, as in $(expr {} + 0)"},
		{"unset {}", "{} is taken for the name of a variable"},
		{"read {1} <f", "write the name of a variable there, and the input elsewhere, as in f={1}"},
		{"true; unset", "the input follows the command and is taken for the name of a variable"},
		{"eval cat {}", `write "$f" in the code, inside single quotes`},
		{"RANDOM={}; echo $RANDOM", "use a variable that means nothing to the shell"},
		{"echo a;", "the input follows the command and would be a command of its own"},
		{"echo a # ", "the input follows the command and is in a comment"},
	} {
		for _, flags := range [][]string{{"-0"}, {"-0", "--dry-run"}, {"-0", "--joblog", "log", "--resume"}} {
			cmd := command(t, append(append([]string{"run"}, flags...), row.script)...)
			got := runCmd(t, cmd, strings.Join(hostileNames, "\x00"))
			got.want(t, "", row.says, 125)
			if !strings.Contains(got.stderr, "the command is: "+row.script) {
				t.Errorf("%s: the message %q does not show the command", row.script, got.stderr)
			}
			if pwned(t, cmd.Dir) {
				t.Errorf("%s: an input was executed", row.script)
			}
		}
	}
}

// What is accepted leaves each input what it is, hostile as it may be.
func TestRun_InputsStayWords(t *testing.T) {
	for _, script := range []string{
		`printf '%s\0' {}`, `f={}; printf '%s\0' "$f"`, `printf '%s\0'`,
		`printf '%s\0' "$(printf '%s.' {})" | sed 's/\.\x00/\x00/'`,
		`printf '{#}' >/dev/null; printf "%s\0" {}`, `f={}; eval 'printf "%s\0" "$f"'`,
		`[ {} = 1 ] || [ $(expr {} + 0 2>/dev/null || echo 2) -eq 1 ] || printf '%s\0' {}`,
	} {
		cmd := command(t, "run", "-0", "-j1", script)
		// $(…) drops newlines at the end; the dot after them keeps them.
		runCmd(t, cmd, strings.Join(hostileNames, "\x00")).want(t, strings.Join(hostileNames, "\x00")+"\x00", "", 0)
		if pwned(t, cmd.Dir) {
			t.Errorf("%s: an input was executed", script)
		}
	}
}

// The words of a command that a shell reads are not quoted by stint: what would
// put inputs into them is refused.
func TestRun_ShellsOfTheCommandAreRefused(t *testing.T) {
	for _, words := range [][]string{
		{"sh", "-c", "cat {}"},
		{"/bin/bash", "-ec", "cat {}"},
		{"bash", "-o", "pipefail", "-c", "cat {.}"},
		{"dash", "-c", "-e", "cat {1}"},
		{"sh", "-c", "--", "cat {}"},
		{"sh", "-c", "+x", "cat {}"},
		{"sh", "-c", "-o", "errexit", "cat {}"},
		{"env", "A=b", "sh", "-c", "cat {}"},
		{"timeout", "5", "nice", "sh", "-c", "cat {}"},
		{"sudo", "-u", "nobody", "sh", "-c", "cat {}"},
		{"flock", "lock", "sh", "-c", "cat {}"},
		{"docker", "exec", "box", "bash", "-c", "cat {}"},
		{"flock", "lock", "-c", "cat {}"},
		{"su", "nobody", "-c", "cat {}"},
	} {
		cmd := command(t, append([]string{"run", "-0"}, words...)...)
		got := runCmd(t, cmd, strings.Join(hostileNames, "\x00"))
		got.want(t, "", "is in the script of", 125)
		remedy := `write "$1" in the script`
		if slices.Contains([]string{"flock", "su"}, words[0]) && !slices.Contains(words, "sh") {
			remedy = "flock FILE COMMAND"
		}
		if !strings.Contains(got.stderr, remedy) || pwned(t, cmd.Dir) {
			t.Errorf("%q: stint says %q", words, got.stderr)
		}
	}
	stint(t, "a b\n", "run", "sh", "-c", `echo "$1"`, "sh", "{}").want(t, "a b\n", "", 0)
	stint(t, "", "run", "sh", "-c", "{}", ":::", "echo meant").want(t, "meant\n", "", 0)
	stint(t, "", "run", "echo", "sh", "-c", "{}", ":::", "a").want(t, "sh -c a\n", "", 0)
	for _, words := range [][]string{
		{"flock", "lock", "tar", "-czf", "{}.tgz", "{}"},
		{"flock", "-w", "5", "lock", "gcc", "-c", "{}.c"},
		{"runuser", "-u", "bob", "--", "rsync", "-ac", "{}/", "h:{}"},
		{"su", "bob"},
	} {
		words = append([]string{"run", "--dry-run"}, words...)
		if r := stint(t, "a", words...); r.status != 0 {
			t.Errorf("%q: status %d, %s", words, r.status, r.stderr)
		}
	}
	stint(t, "", "run", "env", "SHELL=/bin/sh", "echo", "-c", "of {}", ":::", "a").want(t, "-c of a\n", "", 0)
}

// Several inputs in the place of one word would make commands of some.
func TestRun_SeveralInputsInAPartOfAWord(t *testing.T) {
	for _, args := range [][]string{
		{"-n2", `f={}; echo "$f"`, ":::", "a", "b"},
		{`f={}; echo "$f"`, ":::", "a", ":::", "b"},
		{"-n2", "cat >{}", ":::", "a", "b"},
	} {
		stint(t, "", append([]string{"run"}, args...)...).want(t, "", "{} stands for several inputs and is a part", 125)
	}
	stint(t, "", "run", "-n2", `set -- {}; printf '<%s>' "$@"`, ":::", "a", "b c").want(t, "<a><b c>", "", 0)
}
