package template_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stintgo/stint/cmd/stint/internal/template"
)

// script joins words with spaces, as typed, and parses them.
func script(t *testing.T, cfg template.ScriptConfig, words ...string) (template.Script, error) {
	t.Helper()
	var templates []template.Template
	for _, word := range words {
		templates = append(templates, template.Parse(word, ""))
	}
	return template.ParseScript(templates, cfg)
}

func TestScript_QuotesInputsOnly(t *testing.T) {
	job := &template.Job{Seq: 3, Slot: 2, Args: []string{"it's"}, Fields: []string{"$(id)", "2"}}
	for _, row := range []struct{ script, want string }{
		{"gzip -c {} > {1}; echo $HOME", `gzip -c 'it'\''s' > '$(id)'; echo $HOME`},
		{"echo {2} {2}.gz", "echo 2 2.gz"},
		{"echo {2}>x {2}<y", "echo '2'>x '2'<y"}, // not descriptor 2
		{"echo {#}>x {%}>x", "echo '3'>x '2'>x"},
		{"echo {a,{2}} {2}", "echo {a,'2'} 2"},
		{`echo "{#}" '{%}' \{#} $((1+{#})) # {#}`, `echo "3" '2' \3 $((1+3)) # 3`},
		{`f={}; echo "$f"`, `f='it'\''s'; echo "$f"`},
		{`echo "$(cat < {1})" "a "{}" b"`, `echo "$(cat < '$(id)')" "a "'it'\''s'" b"`},
	} {
		s, err := script(t, template.ScriptConfig{}, row.script)
		if err != nil {
			t.Errorf("%s: %v", row.script, err)
			continue
		}
		if got, err := s.String(job); err != nil || got != row.want {
			t.Errorf("%s is filled in as\n%s, %v; want\n%s", row.script, got, err, row.want)
		}
	}
}

func TestScript_SlotUnknown(t *testing.T) {
	s, err := script(t, template.ScriptConfig{}, "echo {%}>x")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := s.String(&template.Job{}); got != "echo {%}>x" {
		t.Errorf("got %q, want the placeholder left in place", got)
	}
}

// The error of a refused script names the placeholder, the script and a remedy.
func TestScript_Refuses(t *testing.T) {
	several := template.ScriptConfig{Several: true}
	appends := template.ScriptConfig{Append: true}
	for _, row := range []struct {
		cfg    template.ScriptConfig
		script string
		want   []string
	}{
		{script: `wc -c "{/.}"`, want: []string{
			"{/.} is inside double quotes", "leave the quotes out", `begin the script with f={/.}; and use "$f"`,
		}},
		{script: "awk '{1}'", want: []string{"{1} is inside single quotes", "leave the quotes out"}},
		{script: "jq '{}'", want: []string{"another name with -I"}},
		{script: `find . -exec a \{} +`, want: []string{"{} has a backslash before it", "another name with -I"}},
		{script: "echo `cat {}`", want: []string{"{} is inside backquotes", "$(…)"}},
		{script: "echo ${2}", want: []string{"{2} has a $ before it", "write $2"}},
		{script: "make >& {}.log", want: []string{"{} has >& or <& before it", "write > {} 2>&1"}},
		{script: "echo $((1 + {}))", want: []string{"{} is inside arithmetic", "expr"}},
		{cfg: several, script: `wc -c "{}"`, want: []string{`set -- {}; and use "$@"`}},
		{cfg: several, script: "f={}; cat", want: []string{"{} stands for several inputs", "{1}", `set -- {}; and use "$@"`}},
		{cfg: several, script: "cat > {}", want: []string{"{} stands for several inputs"}},
		{cfg: appends, script: "date # now", want: []string{"the input follows the command and is in a comment", "-n0"}},
		{cfg: appends, script: "date;", want: []string{"the input follows the command and would be a command of its own"}},
		{cfg: appends, script: "echo 'a", want: []string{"the input follows the command and is inside single quotes"}},
	} {
		_, err := script(t, row.cfg, row.script)
		if err == nil {
			t.Errorf("%s is accepted", row.script)
			continue
		}
		for _, part := range append(row.want, "the command is: "+row.script) {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v; want %q in it", row.script, err, part)
			}
		}
		if !errors.Is(err, template.ErrCode) {
			t.Errorf("%s: %v does not wrap ErrCode", row.script, err)
		}
	}
}

func TestScript_SeveralInputs(t *testing.T) {
	job := &template.Job{Args: []string{"a", "b c"}, Fields: []string{"a", "b c"}}
	for _, row := range []struct {
		cfg          template.ScriptConfig
		script, want string
	}{
		{template.ScriptConfig{Several: true}, `set -- {}; echo "$@"`, `set -- a 'b c'; echo "$@"`},
		{template.ScriptConfig{Several: true}, "x={2}; (cat {})>y", "x='b c'; (cat a 'b c')>y"},
		{template.ScriptConfig{Several: true, Append: true}, "date; cat", "date; cat a 'b c'"},
	} {
		s, err := script(t, row.cfg, row.script)
		if err != nil {
			t.Errorf("%s: %v", row.script, err)
			continue
		}
		if got, err := s.String(job); err != nil || got != row.want {
			t.Errorf("%s is filled in as %s, %v; want %s", row.script, got, err, row.want)
		}
	}
}

// Quotes that one word opens are open in the next.
func TestScript_OfSeveralWords(t *testing.T) {
	if _, err := script(t, template.ScriptConfig{}, `echo "`, "{}", `"`); err == nil {
		t.Error("a placeholder between quotes in other words is accepted")
	}
	s, err := script(t, template.ScriptConfig{}, "echo", "{}", "&&", "date")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := s.String(&template.Job{Args: []string{"a;b"}}); got != "echo 'a;b' && date" {
		t.Errorf("filled in as %s", got)
	}
}
