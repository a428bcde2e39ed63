//go:build linux

package main_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// On a terminal there is a bar, which leaves nothing behind, and output goes
// around it.
func TestProgress_BarOnTerminal(t *testing.T) {
	screen, terminal := pty(t)
	gate := fifo(t)
	cmd := command(t, "run", "-j1", "if [ {} = 3 ]; then read x < "+gate+"; fi; echo out {}", ":::", "1", "2", "3", "4")
	cmd.Env = append(cmd.Env, "TERM=xterm", "NO_COLOR=1")
	cmd.Stdout, cmd.Stderr = terminal, terminal
	start(t, cmd)
	terminal.Close()
	var shown strings.Builder
	buf := make([]byte, 4096)
	readUntil := func(text string) {
		t.Helper()
		for !strings.Contains(shown.String(), text) {
			n, err := screen.Read(buf)
			shown.Write(buf[:n])
			if err != nil {
				t.Fatalf("waiting for %q: %v after %q", text, err, shown.String())
			}
		}
	}
	readUntil("2/4 (50%)")
	if !strings.Contains(shown.String(), "██") || !strings.Contains(shown.String(), "out 1\r\n") {
		t.Errorf("the screen got %q", shown.String())
	}
	write(t, gate, "go\n")
	readUntil("out 4\r\n")
	if status := finish(t, cmd); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for {
		n, err := screen.Read(buf)
		shown.Write(buf[:n])
		if err != nil {
			break // EIO: no process has the terminal open
		}
	}
	if last := lastLine(shown.String()); last != "" {
		t.Errorf("left on the screen: %q", last)
	}
}

// lastLine is what a terminal shows in its last line.
func lastLine(text string) string {
	text = text[strings.LastIndexByte(text, '\n')+1:]
	return text[max(strings.LastIndex(text, "\r\x1b[K")+len("\r\x1b[K"), 0):]
}

func TestProgress_JSON(t *testing.T) {
	r := stint(t, "", "run", "-q", "--progress", "json", "exit {}", ":::", "0", "1", "0")
	last := r.stderr[strings.LastIndexByte(strings.TrimSuffix(r.stderr, "\n"), '\n')+1:]
	var got map[string]any
	if err := json.Unmarshal([]byte(last), &got); err != nil {
		t.Fatalf("%v in %q", err, r.stderr)
	}
	for name, want := range map[string]any{
		"event": "end", "done": 3.0, "total": 3.0, "succeeded": 2.0, "failed": 1.0, "running": 0.0,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}

func TestProgress_NothingWhenShortAndNotOnTerminal(t *testing.T) {
	stint(t, "", "run", "true", ":::", "1", "2").want(t, "", "", 0)
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if r := stint(t, "", "completion", shell); r.status != 0 || !strings.Contains(r.stdout, "stint") {
			t.Errorf("%s: status %d, %d bytes", shell, r.status, len(r.stdout))
		}
	}
	stint(t, "", "completion", "csh").want(t, "", `"csh" is not a command of stint completion`, 125)
}

// The descriptions of the flags of a command begin in one column.
func TestHelp_Columns(t *testing.T) {
	flag := regexp.MustCompile(`(?m)^  (?:-\w, |    )--\S+ (?:\S+ )? +`)
	for _, name := range []string{"run", "sem", "serve", "submit", "upload"} {
		columns := make(map[int]string)
		for _, begin := range flag.FindAllString(stint(t, "", name, "--help").stdout, -1) {
			columns[utf8.RuneCountInString(begin)] = begin
		}
		if len(columns) != 1 {
			t.Errorf("%s: %v", name, columns)
		}
	}
}

// The guides name every flag of help.
func TestHelp_AndGuideAgree(t *testing.T) {
	for _, name := range []string{"run", "sem"} {
		guide := read(t, "../../docs/"+name+".md")
		for line := range strings.Lines(stint(t, "", name, "--help").stdout) {
			_, rest, ok := strings.Cut(line, " --")
			if !ok || !strings.HasPrefix(strings.TrimSpace(line), "-") {
				continue
			}
			flag := "--" + strings.FieldsFunc(rest, func(c rune) bool { return c == ' ' || c == '[' })[0]
			if flag != "--help" && !strings.Contains(guide, "`"+flag) {
				t.Errorf("docs/%s.md does not mention %s", name, flag)
			}
		}
	}
}

func TestBench(t *testing.T) {
	r := stint(t, "", "bench", "--json", "--time", "10ms")
	var rows []struct {
		Name  string
		Value float64
	}
	if err := json.Unmarshal([]byte(r.stdout), &rows); err != nil || r.status != 0 {
		t.Fatalf("%v, status %d: %s%s", err, r.status, r.stdout, r.stderr)
	}
	if len(rows) < 9 {
		t.Errorf("%d rows: %s", len(rows), r.stdout)
	}
	for _, row := range rows {
		if row.Value == 0 || row.Name == "" {
			t.Errorf("%+v", row)
		}
	}
}
