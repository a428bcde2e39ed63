package run

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/stintgo/stint/cmd/stint/internal/shellquote"
	"github.com/stintgo/stint/cmd/stint/internal/template"
	"github.com/stintgo/stint/internal/proc"
)

// shellPath is the shell that POSIX specifies.
const shellPath = "/bin/sh"

// Shell says whether a shell runs the command.
type Shell uint8

// The ways to run a command.
const (
	// ShellAuto uses a shell for a command of one word that contains blanks or shell
	// syntax, as in 'gzip -c {} > {}.gz', and is not a file. Programs hardly ever have
	// such names.
	ShellAuto Shell = iota
	ShellAlways
	ShellNever
)

// Command is the command to run for each input. It is immutable.
type Command struct {
	words  []template.Template
	script *template.Script // the words as a shell script; nil: no shell
	lines  bool             // no words: each input is a shell script
	// appends: no word has a placeholder, so the inputs are appended.
	appends bool
}

// CommandConfig says how NewCommand reads the words of a command.
type CommandConfig struct {
	Shell Shell
	Name  string // the placeholder of the input instead of {}, or empty
	// NoInput: nothing is appended to a command without placeholders; the inputs only
	// determine how often it runs.
	NoInput bool
	Several bool // jobs have more than one input
}

// NewCommand parses the words of a command. Without words each input is a shell script.
// An error that wraps [template.ErrCode] names a placeholder in a place where an input
// could become shell code.
func NewCommand(words []string, cfg CommandConfig) (Command, error) {
	if len(words) == 0 {
		return Command{lines: true}, nil
	}
	c := Command{appends: !cfg.NoInput}
	for _, word := range words {
		t := template.Parse(word, cfg.Name)
		c.words = append(c.words, t)
		c.appends = c.appends && !t.HasPlaceholder()
	}
	if cfg.Shell != ShellAlways && (cfg.Shell != ShellAuto || !LooksLikeScript(words)) {
		return c, checkNestedShell(words, c.words)
	}
	script, err := template.ParseScript(c.words, template.ScriptConfig{Append: c.appends, Several: cfg.Several})
	c.script = &script
	return c, err
}

// LooksLikeScript reports whether [ShellAuto] uses a shell for a command.
func LooksLikeScript(words []string) bool {
	if len(words) != 1 || !strings.ContainsAny(words[0], " \t\n|&;<>()$`\\\"'*?[#~") {
		return false
	}
	_, err := os.Stat(words[0])
	return err != nil
}

// argv returns the words of one job's command; the first is the program.
func (c *Command) argv(job *template.Job) ([]string, error) {
	if c.shell() {
		script, err := c.scriptFor(job)
		return []string{"sh", "-c", script}, err
	}
	words := make([]string, 0, len(c.words)+len(job.Args))
	for _, t := range c.words {
		var err error
		if words, err = t.AppendWords(words, job); err != nil {
			return nil, err
		}
	}
	if c.appends {
		// Without a column separator, the fields are the inputs themselves.
		words = append(words, job.Fields...)
	}
	return words, nil
}

// shell reports whether a shell runs the command.
func (c *Command) shell() bool { return c.lines || c.script != nil }

func (c *Command) scriptFor(job *template.Job) (string, error) {
	if c.lines {
		return job.Args[0], nil
	}
	return c.script.String(job)
}

// text returns one job's command as it would be typed.
func (c *Command) text(job *template.Job) (string, error) {
	if c.shell() {
		return c.scriptFor(job)
	}
	words, err := c.argv(job)
	return shellquote.Join(words), err
}

// Check looks up the program if it is the same for all jobs, so that a mistyped name is
// one error and not one for each input.
func (c *Command) Check() error {
	if c.shell() || c.words[0].HasPlaceholder() {
		return nil
	}
	name, err := c.words[0].String(&template.Job{})
	if err != nil {
		return err
	}
	_, err = look(name)
	return err
}

// look looks up a program. The error for the name of a script has a remedy.
func look(name string) (string, error) {
	path, err := proc.Look(name)
	if err != nil && LooksLikeScript([]string{name}) {
		err = fmt.Errorf("%w; a command of several words is started without a shell: write one word, or give --shell", err)
	}
	return path, err
}

// paths caches where programs are. The zero value is ready for use, and safe for
// concurrent use.
type paths struct {
	mu   sync.Mutex
	last string // the name looked up last, nearly always the only one
	path string
}

// look returns the path of the program that argv names.
func (p *paths) look(c *Command, argv []string) (string, error) {
	if c.shell() {
		return shellPath, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path != "" && p.last == argv[0] {
		return p.path, nil
	}
	path, err := look(argv[0])
	if err != nil {
		return "", err
	}
	p.last, p.path = argv[0], path
	return path, nil
}
