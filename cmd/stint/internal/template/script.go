package template

import (
	"errors"
	"fmt"
	"strings"

	"github.com/stintgo/stint/cmd/stint/internal/shellquote"
)

// ErrCode is wrapped by the error of a script with a placeholder where quotes do not keep
// an input from being read as shell syntax.
var ErrCode = errors.New("where an input could become shell code")

// Script is a template of a shell script. The values of placeholders are quoted, and stay
// a word or a part of one, whatever the input.
type Script struct {
	pieces  []piece
	appends bool // the fields of a job are appended as words
}

// piece is a part of a script, with the way to write its values.
type piece struct {
	part

	write func(dst []byte, word string) []byte
}

// ScriptConfig says how to fill in a script.
type ScriptConfig struct {
	Append  bool // the fields of a job are appended as words
	Several bool // jobs have more than one input
}

// ParseScript joins words with spaces to a script. An error that wraps [ErrCode] names
// the first placeholder at a place where an input could change the script. A job's number
// and slot may be anywhere.
func ParseScript(words []Template, cfg ScriptConfig) (Script, error) {
	s := Script{appends: cfg.Append}
	for i, t := range words {
		if i > 0 {
			s.pieces = append(s.pieces, piece{part: part{text: " "}})
		}
		for _, p := range t.parts {
			s.pieces = append(s.pieces, piece{part: p})
		}
	}
	holes := shellquote.Holes(s.marked())
	for i := range s.pieces {
		p := &s.pieces[i]
		if p.what == literal {
			continue
		}
		if err := p.place(holes[0], cfg.Several); err != nil {
			return s, fmt.Errorf("%w; the command is: %s", err, s.typed())
		}
		holes = holes[1:]
	}
	if cfg.Append {
		if err := checkAppended(holes[0]); err != nil {
			return s, fmt.Errorf("%w; the command is: %s", err, s.typed())
		}
	}
	return s, nil
}

// typed returns the script as it was typed.
func (s *Script) typed() string {
	var text strings.Builder
	for i := range s.pieces {
		text.WriteString(s.pieces[i].text)
	}
	return text.String()
}

// marked returns the script with a mark at each placeholder.
func (s *Script) marked() string {
	var text strings.Builder
	for i := range s.pieces {
		if p := &s.pieces[i]; p.what == literal {
			text.WriteString(p.text)
			continue
		}
		text.WriteByte(shellquote.HoleMark)
	}
	if s.appends {
		text.WriteByte(' ')
		text.WriteByte(shellquote.HoleMark)
	}
	return text.String()
}

// place sets how p is written at its place, or returns an error.
func (p *piece) place(hole shellquote.Hole, several bool) error {
	switch {
	case p.what != input && hole.Problem != "":
		p.write = asIs // a number is safe everywhere
	case hole.Problem != "":
		return fmt.Errorf("%s %s, %w: %s", p.text, hole.Problem, ErrCode, p.remedy(hole.Problem, several))
	case several && p.what == input && p.field == 0 && !hole.Alone:
		return fmt.Errorf("%s stands for several inputs and is a part of a word, %w: write {1} for the first of them, or %s",
			p.text, ErrCode, p.variable(several))
	case hole.Bare:
		p.write = shellquote.Append
	default:
		p.write = shellquote.AppendQuoted
	}
	return nil
}

// remedy returns what to write in place of p.
func (p *piece) remedy(problem shellquote.Problem, several bool) string {
	var ways []string
	switch problem {
	case shellquote.InsideSingle, shellquote.InsideDouble:
		ways = append(ways, "leave the quotes out, as stint quotes each input itself")
	case shellquote.InsideBackquotes:
		ways = append(ways, "write $(…) in place of the backquotes")
	case shellquote.InsideArithmetic:
		// A variable is not a remedy: some shells evaluate its value.
		return fmt.Sprintf("let expr calculate, as in $(expr %s + 1)", p.text)
	case shellquote.AfterDescriptor:
		// Nor here: bash expands the result of the expansion.
		return fmt.Sprintf("write > %s 2>&1", p.text)
	case shellquote.AsNumber:
		// expr reads its argument as a number or reports an error.
		return fmt.Sprintf("compare it as text, as in [ %s = 1 ], or have expr check it, as in $(expr %[1]s + 0)", p.text)
	case shellquote.AsName:
		return fmt.Sprintf("write the name of a variable there, and the input elsewhere, as in f=%s; "+
			"env %[1]s command sets a variable that an input names", p.text)
	case shellquote.AsSpecial:
		return "use a variable that means nothing to the shell"
	case shellquote.AsCode:
		return fmt.Sprintf(`begin the script with f=%s; and write "$f" in the code, inside single quotes`, p.text)
	case shellquote.AfterDollar:
		if p.field > 0 && p.trim == whole {
			ways = append(ways, fmt.Sprintf("write $%d for a parameter of the shell", p.field))
		}
	case shellquote.AfterBackslash:
	}
	ways = append(ways, p.variable(several))
	if (problem == shellquote.InsideSingle || problem == shellquote.AfterBackslash) && p.field == 0 && p.trim == whole {
		ways = append(ways, fmt.Sprintf("give the input another name with -I if the command is to see %s", p.text))
	}
	return strings.Join(ways, ", or ")
}

// variable says how to put the input into a variable, which may be used anywhere.
func (p *piece) variable(several bool) string {
	if several && p.field == 0 {
		return fmt.Sprintf(`begin the script with set -- %s; and use "$@"`, p.text)
	}
	return fmt.Sprintf(`begin the script with f=%s; and use "$f"`, p.text)
}

// checkAppended refuses an input after a script if it would not be a word of the last
// command.
func checkAppended(hole shellquote.Hole) error {
	problem := hole.Problem
	if hole.First {
		problem = "would be a command of its own"
	}
	if problem == "" {
		return nil
	}
	return fmt.Errorf("the input follows the command and %s, %w: write {} where it belongs, or -n0 if nowhere",
		problem, ErrCode)
}

// String returns the script filled in.
func (s *Script) String(job *Job) (string, error) {
	var text []byte
	for i := range s.pieces {
		p := &s.pieces[i]
		var err error
		if text, err = p.appendTo(text, job, p.write); err != nil {
			return "", err
		}
	}
	if s.appends {
		for _, word := range job.Fields {
			text = shellquote.Append(append(text, ' '), word)
		}
	}
	return string(text), nil
}
