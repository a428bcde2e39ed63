package shellquote_test

import (
	"context"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/shellquote"
)

// holes reads a script in which @ is a hole.
func holes(script string) []shellquote.Hole {
	return shellquote.Holes(strings.ReplaceAll(script, "@", string(shellquote.HoleMark)))
}

func TestHoles_WhereQuotesHold(t *testing.T) {
	for _, script := range []string{
		"@", "cat @", "cat @ @", "x@y", "@.gz", `"a "@" b"`, `'a'@'b'`, "a;@", "a&&@", "a|@", "(cd @; ls)", "{ a @; }",
		"a >@ 2>@", "a 2>&1 @", `\\@`, "a \\\n @", `"$(cat @)"`, `"$(cat "$(cat @)")"`, "$(cat @)", "<(cat @) @",
		"a#b @", "a # b\n@", "a '#' @", `a "#" @`, `"it's" @`, "`a` @", "`a \"$b\"` @", "$((1+2)) @",
		"$(( (1+2)*3 )) @",
		"${a} @", "${a:-b} @", "${a%.*} @", `"${a}" @`, "$'a' @", "$$ @", `"$$(" @`, "$! $? $# $- @", "$1@", "a$ @",
		"case @ in @) b @;; esac; c @", "(case a in b) @;; esac) @", "f() { a @; }; f @", "a <<< @",
		"for i in @; do a; done",
		"[ -f @ ] && a [@] @", "[ @ = 1 ]", "[[ @ = 1 && -f @ ]]", "test @", "[ $(expr @ + 0) -eq 1 ]", "ls -lt @",
		"grep -v @",
		"[ 1 -eq 2 ] && a @", "[[ 1 -eq 2 ]]; a @", "[ 1 -eq 2 -a @ = b ]", "a -eq @", "export x=@",
		"local x=a@ y=@", "a; eval @",
		"eval -- @", "trap @ EXIT", ". @", "source @", "read x <@", "read x <<<@", "unset x; a @", "(unset x) >@",
		"a unset @",
		"for x in read @; do a; done", "printf '%s' -v @", "x=unset @", "set -- @", "RANDOM=1 a @", "a RANDOM=@",
		"a[b]@", "if a @; then b @; fi", "x=@", "x=(@ @)", "! @", "a=b @",
	} {
		for i, hole := range holes(script) {
			if hole.Problem != "" {
				t.Errorf("%s: hole %d %s", script, i, hole.Problem)
			}
		}
	}
}

func TestHoles_WhereTheyDont(t *testing.T) {
	const unclear = "comes after syntax that shells read in different ways"
	for _, row := range []struct {
		script string
		want   shellquote.Problem
	}{
		{`"@"`, shellquote.InsideDouble},
		{`"a$(b)@"`, shellquote.InsideDouble},
		{`"a" "'@"`, shellquote.InsideDouble},
		{`"\"@"`, shellquote.InsideDouble},
		{`"\@"`, shellquote.InsideDouble},
		{`"$@"`, shellquote.InsideDouble},
		{`"a `, ""},
		{`"a @`, shellquote.InsideDouble},
		{`"$(a "@")"`, shellquote.InsideDouble},
		{`"$$(@)"`, shellquote.InsideDouble},
		{`"'"'@'`, shellquote.InsideSingle},
		{`'@'`, shellquote.InsideSingle},
		{`'a\'@`, ""},
		{`'a\''@'`, shellquote.InsideSingle},
		{`$'@'`, shellquote.InsideSingle},
		{"`@`", shellquote.InsideBackquotes},
		{"\"`@`\"", shellquote.InsideBackquotes},
		{"`a '@'`", shellquote.InsideBackquotes},
		{`\@`, shellquote.AfterBackslash},
		{`\\\@`, shellquote.AfterBackslash},
		{"$@", shellquote.AfterDollar},
		{"a >& @", shellquote.AfterDescriptor},
		{"a 2>&1@", shellquote.AfterDescriptor},
		{"a >&$(b >c)@", shellquote.AfterDescriptor},
		{"$((@))", shellquote.InsideArithmetic},
		{"((x=@))", shellquote.InsideArithmetic},
		{"$((a(b)+@))", shellquote.InsideArithmetic},
		{`"$((@))"`, shellquote.InsideArithmetic},
		{"# @", "is in a comment"},
		{"a;#@", "is in a comment"},
		{"a # ' @", "is in a comment"},
		{"${a:-@}", "is inside ${…}"},
		{"x[@]=1", "is inside a subscript, x[…]"},
		{"cat <<E\n@", "comes after a <<"},
		{"cat <<@", "comes after a <<"},
		{`"$(case a in b) c "@";; esac)"`, "comes after a case inside $(…)"},
		{"$(case a in b) c)# it's\n@", "comes after a case inside $(…)"},
		{"x=([@]=1)", "is inside a subscript, x[…]"},
		{"[[ @ -eq 1 ]]", shellquote.AsNumber},
		{"[[ 1 -eq @ ]]", shellquote.AsNumber},
		{"[[ a = b && ( @ -lt 1 ) ]]", shellquote.AsNumber},
		{"[[ a = b || 1 -ge x@ ]]", shellquote.AsNumber},
		{"if [ @ -ne 1 ]; then a; fi", shellquote.AsNumber},
		{"! test 1 -gt @", shellquote.AsNumber},
		{"while [ a = @ -a @.1 -le 1 ]; do a; done", shellquote.AsNumber},
		{`[ @ "-eq" 1 ]`, shellquote.AsNumber},
		{"[ -t @ ]", shellquote.AsNumber},
		{"[ -v @ ]", shellquote.AsName},
		{"[[ -n a && -v @ ]]", shellquote.AsName},
		{"[[ -R @ ]]", shellquote.AsName},
		{"let @", shellquote.AsNumber},
		{"shift @", shellquote.AsNumber},
		{"ulimit -n @", shellquote.AsNumber},
		{"unset @", shellquote.AsName},
		{"unset -v a @", shellquote.AsName},
		{`\unset @`, shellquote.AsName},
		{`"un"'set' @`, shellquote.AsName},
		{"a | read @", shellquote.AsName},
		{"a=b 2>c command -p read -r @", shellquote.AsName},
		{"f() { read @; }", shellquote.AsName},
		{"function f { read @; }", shellquote.AsName},
		{"case a in b) read @;; esac", shellquote.AsName},
		{"(case a in b) read @;; esac)", shellquote.AsName},
		{"a && { read @; }", shellquote.AsName},
		{"$(read @)", shellquote.AsName},
		{"read &>a @", shellquote.AsName},
		{"read >$(a) @", shellquote.AsName},
		{"x=(a b) read @", shellquote.AsName},
		{"typeset x=(a b) @", shellquote.AsName},
		{"printf -v @ a", shellquote.AsName},
		{"printf -v@ a", shellquote.AsName},
		{"mapfile -C @ x", shellquote.AsName},
		{"getopts ab @", shellquote.AsName},
		{"export @", shellquote.AsName},
		{"export @=a", shellquote.AsName},
		{"declare -i x=@", shellquote.AsName},
		{"local x @", shellquote.AsName},
		{"eval a @", shellquote.AsCode},
		{"eval a@", shellquote.AsCode},
		{"eval @ @", shellquote.AsCode},
		{"trap rm@ EXIT", shellquote.AsCode},
		{"PS4=@; set -x", shellquote.AsSpecial},
		{"RANDOM+=@", shellquote.AsSpecial},
		{"export OPTIND=@", shellquote.AsSpecial},
		{`$'\\' @`, unclear},
		{"$[1] @", unclear},
		{"`a \\$b` @", unclear},
		{"`a 'b` @", unclear},
		{"\"`a \"b\"`\" @", unclear},
		{`${a:-"b"} @`, unclear},
		{`"${a:-'}" @ "`, unclear},
		{"${ a; } @", unclear},
		{"$(a # b)\n) @", unclear},
		{"a\\\nb @", unclear},
		{"$((a 'b')) @", unclear},
		{"a @(b|'c') d", ""},
		{"a +('b') @", unclear},
	} {
		var got shellquote.Problem
		for _, hole := range holes(row.script) {
			got = max(got, hole.Problem)
		}
		if got != row.want {
			t.Errorf("%s: the hole %q, want %q", row.script, got, row.want)
		}
	}
}

func TestHoles_InTheWord(t *testing.T) {
	for script, want := range map[string]shellquote.Hole{
		"@":             {Alone: true, First: true},
		"a @":           {Bare: true, Alone: true},
		"a; @":          {Alone: true, First: true},
		"a | @":         {Alone: true, First: true},
		"a\n@":          {Alone: true, First: true},
		"x=1 @":         {Alone: true, First: true},
		"! @":           {Alone: true, First: true},
		">f @":          {Alone: true, First: true},
		"a 2>&1 @":      {Bare: true, Alone: true},
		"a >f @":        {Bare: true, Alone: true},
		"a @.b":         {Bare: true},
		"a b@":          {Bare: true},
		"x=@":           {Bare: true},
		"a >@":          {Bare: true},
		"a @>f":         {Alone: true},
		"a {@,b}":       {},
		"a $(b)@":       {Bare: true},
		"(a @)":         {Bare: true, Alone: true},
		"$(a; b) @":     {Bare: true, Alone: true},
		"a && (b) && @": {Alone: true, First: true},
	} {
		got := holes(script)
		if len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, want %+v", script, got, want)
		}
	}
}

// tokens are the parts of random scripts: quotes, openings, ends and words, without
// loops, recursion and harmful commands.
var tokens = []string{
	"@", "@", "@", "@", "'", "'", `"`, `"`, "`", `\`, "$", "$(", ")", "$((", "))", "((", "(", "${x:-", "${x}",
	"}", "{y,",
	" ", " ", " ", "\n", ";", "&&", "#", "<<E\n", "\nE\n", "<", ">f", "7>&1", "$'", "$[", "]", "x=", "x[", "7", ",",
	"printf '<%s>' ", "printf '<%s>' ", "printf '<%s>' ", "case 7 in 7) ", ";; esac", "$#", "!", "=", "\\\n", "\t",
}

// builtins are tokens of commands that evaluate some of their words. Commands that run
// code by intent, such as eval @, are not among them.
var builtins = []string{
	"@", "@", "@", "@", " ", " ", " ", "\n", ";", "'", `"`, "&&", "||", "{ ", "; }", "(", ")", ">f ", "x=", "=",
	"7", "$(", "x=(", "[",
	"[[ ", "[[ ", " ]]", "[ ", "[ ", " ]", "test ", " -eq ", " -lt ", " = ", "-v ", "-t ", "! ", "if ", "; then ",
	"; fi",
	"unset ", "read ", "let ", "declare ", "typeset ", "export ", "readonly ", "local ", "printf -v ",
	"printf '<%s>' ", "-i ", "-f ",
	"shift ", "ulimit ", "getopts x ", "command ", "mapfile ", "RANDOM=", "case 7 in 7) ", ";; esac", "f() ",
	"integer ", "2>f ",
}

// hostile are inputs that create a file if a shell runs any of them as code.
var hostile = []string{
	"$(: >pwned)", "`: >pwned`", "'; : >pwned; '", `"; : >pwned; "`, "\n: >pwned\n", "; : >pwned;",
	`\'; : >pwned; #`,
	"a\nE\n: >pwned\n", "a)); : >pwned; ((", "a}; : >pwned; {", "x[$(: >pwned)]", "x[$(: >pwned)]=1",
	"RANDOM[$(: >pwned)]",
	"a; : >pwned", "|: >pwned", "&: >pwned #",
	"$((: >pwned))", "*", "~", "2", "7,8", "-n", "a b", "", "=", "esac", `\`, "'", `"`, "#",
}

// scriptOf makes a script of the tokens that the bytes select.
func scriptOf(tokens []string, data []byte) string {
	var script strings.Builder
	for _, b := range data {
		script.WriteString(tokens[int(b)%len(tokens)])
	}
	return script.String()
}

// shells returns the shells of this machine. Only the first surely exists.
func shells() (found [][]string) {
	for _, name := range []string{
		"/bin/sh", "dash", "bash --posix", "busybox sh", "mksh", "ksh", "yash", "zsh --emulate sh",
	} {
		argv := strings.Fields(name)
		if path, err := exec.LookPath(argv[0]); err == nil {
			found = append(found, append([]string{path}, argv[1:]...))
		}
	}
	return found
}

// run runs a script with only built-in commands, in a directory of its own, and returns
// its output.
func run(t *testing.T, shell []string, script, input string) (out string, pwned bool) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "script")
	if err := os.WriteFile(path, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell[0], append(shell[1:], "-c", script)...)
	cmd.Dir, cmd.Env = dir, []string{"PATH=/nonexistent", "f=" + input, "LC_ALL=C"}
	b, _ := cmd.Output() // most scripts are invalid
	_, err := os.Stat(filepath.Join(dir, "pwned"))
	return strings.ReplaceAll(string(b), strconv.Itoa(cmd.ProcessState.Pid()), "PID"), err == nil
}

// check fills in a script without problems and runs it in a shell. The input is not
// executed; a variable in its place would have its value if it is compared.
func check(t *testing.T, shell []string, script, input string, compared bool) (ran bool) {
	t.Helper()
	filled, variable := strings.Builder{}, strings.Builder{}
	parts := strings.Split(script, "@")
	found := holes(script)
	for i, part := range parts {
		filled.WriteString(part)
		variable.WriteString(part)
		if i == len(found) {
			break
		}
		if found[i].Problem != "" {
			return false
		}
		if found[i].Bare {
			filled.WriteString(shellquote.Quote(input))
		} else {
			filled.Write(shellquote.AppendQuoted(nil, input))
		}
		variable.WriteString(`"$f"`)
	}
	if len(found) == 0 {
		return false
	}
	got, pwned := run(t, shell, filled.String(), input)
	if pwned {
		t.Errorf("%v executes the input %q of %q", shell, input, script)
	}
	if !compared {
		return true
	}
	if want, _ := run(t, shell, variable.String(), input); got != want {
		t.Errorf("%v: %q prints\n%q, want\n%q", shell, filled.String(), got, want)
	}
	return true
}

// The shells themselves decide. FuzzHoles continues where this test ends.
func TestHoles_InRealShells(t *testing.T) {
	const scripts = 150 // of each kind for each shell, one process or two each
	rng := rand.New(rand.NewPCG(1, 2))
	for _, shell := range shells() {
		for i, tokens := range [][]string{tokens, builtins} {
			compared := i == 0 // declare, read and others print or change the shell's variables
			ran := 0
			for range scripts {
				data := make([]byte, 3+rng.IntN(8))
				for i := range data {
					data[i] = byte(rng.Uint32())
				}
				if check(t, shell, scriptOf(tokens, data), hostile[rng.IntN(len(hostile))], compared) {
					ran++
				}
			}
			if ran < scripts/10 {
				t.Errorf("%v: only %d scripts are accepted", shell, ran)
			}
		}
	}
}

func FuzzHoles(f *testing.F) {
	f.Add([]byte{40, 0}, "$(: >pwned)")
	f.Add([]byte{40, 6, 0, 6}, "`: >pwned`")
	f.Add([]byte{40, 11, 40, 0, 12}, "'; : >pwned; '")
	f.Fuzz(func(t *testing.T, data []byte, input string) {
		if len(data) > 30 || len(input) > 100 || strings.Contains(input, "\x00") {
			return
		}
		check(t, []string{"/bin/sh"}, scriptOf(tokens, data), input, true)
	})
}
