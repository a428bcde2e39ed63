package run

import (
	"os"
	"strings"
	"sync"

	"github.com/stintgo/stint/cmd/stint/internal/shellquote"
	"github.com/stintgo/stint/cmd/stint/internal/template"
	"github.com/stintgo/stint/internal/proc"
)

// shellPath is the shell that POSIX promises.
const shellPath = "/bin/sh"

// Shell says whether a command goes through a shell.
type Shell uint8

// The ways to run a command.
const (
	// ShellAuto: a command of one word that has blanks or shell syntax in it,
	// as in 'gzip -c {} > {}.gz', and that is no file. Programs hardly ever
	// have such names.
	ShellAuto Shell = iota
	ShellAlways
	ShellNever
)

// Command is what to run for each input. It does not change once made.
type Command struct {
	words  []template.Template
	script *template.Script // what the words are for the shell; nil: no shell
	lines  bool             // there are no words: each input is a shell script
	// appends: no word has a placeholder, so the inputs follow as words.
	appends bool
}

// CommandConfig says how the words of a command are read.
type CommandConfig struct {
	Shell Shell
	Name  string // the text for the input in the place of {}, or empty
	// NoInput: a command without placeholders has no input appended. The inputs
	// then only say how often it runs.
	NoInput bool
	Several bool // jobs have more than one input
}

// NewCommand parses the words of a command. Without words each input is a
// command of its own, for the shell. The error names a placeholder in a place
// where an input could become shell code; it wraps [template.ErrCode].
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

// LooksLikeScript reports whether a command is one word that a shell is to read;
// see [ShellAuto].
func LooksLikeScript(words []string) bool {
	if len(words) != 1 || !strings.ContainsAny(words[0], " \t\n|&;<>()$`\\\"'*?[#~") {
		return false
	}
	_, err := os.Stat(words[0])
	return err != nil
}

// argv returns the words of one job's command, the program first.
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
		// The fields are the inputs themselves, unless a column separator cuts
		// them.
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

// text is one job's command as a person would type it. It is what the job log
// knows the job by, so it does not depend on the slot.
func (c *Command) text(job *template.Job) (string, error) {
	slotless := *job
	slotless.Slot = 0
	if c.shell() {
		return c.scriptFor(&slotless)
	}
	words, err := c.argv(&slotless)
	return shellquote.Join(words), err
}

// Check looks the program up if it is the same for all jobs, so that a name
// that was mistyped is one error and not one for each input.
func (c *Command) Check() error {
	if c.shell() || c.words[0].HasPlaceholder() {
		return nil
	}
	name, err := c.words[0].String(&template.Job{})
	if err == nil {
		_, err = proc.Look(name)
	}
	return err
}

// paths remembers where programs are. The zero value is ready for use, from any
// goroutine.
type paths struct {
	mu   sync.Mutex
	last string // the name looked up last: nearly always the only one
	path string
}

// look returns the file of the program that argv names.
func (p *paths) look(c *Command, argv []string) (string, error) {
	if c.shell() {
		return shellPath, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.path != "" && p.last == argv[0] {
		return p.path, nil
	}
	path, err := proc.Look(argv[0])
	if err != nil {
		return "", err
	}
	p.last, p.path = argv[0], path
	return path, nil
}
