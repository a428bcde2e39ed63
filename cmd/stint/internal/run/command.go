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

// Command is what is to run for each input. It does not change once made.
type Command struct {
	words  []template.Template
	script bool // the words are a shell script
	lines  bool // there are no words: each input is a shell script
	// appends: no word has a placeholder, so the inputs follow as words.
	appends bool
}

// NewCommand parses the words of a command. Without words each input is a
// command of its own, for the shell. name is the text for the input in place of
// {}, if not empty.
// Where noInput is set, a command without placeholders has no input appended:
// the inputs then only say how often it runs.
func NewCommand(words []string, shell Shell, name string, noInput bool) Command {
	if len(words) == 0 {
		return Command{lines: true, script: true}
	}
	c := Command{script: shell == ShellAlways || shell == ShellAuto && LooksLikeScript(words), appends: !noInput}
	for _, word := range words {
		t := template.Parse(word, name)
		c.words = append(c.words, t)
		c.appends = c.appends && !t.HasPlaceholder()
	}
	return c
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
	if c.script {
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
		words = append(words, c.appended(job)...)
	}
	return words, nil
}

// appended is what follows a command without placeholders: the fields, which
// are the inputs themselves unless a column separator cuts them.
func (c *Command) appended(job *template.Job) []string { return job.Fields }

func (c *Command) scriptFor(job *template.Job) (string, error) {
	if c.lines {
		return job.Args[0], nil
	}
	var script strings.Builder
	for i, t := range c.words {
		word, err := t.Shell(job)
		if err != nil {
			return "", err
		}
		if i > 0 {
			script.WriteByte(' ')
		}
		script.WriteString(word)
	}
	if c.appends {
		for _, word := range c.appended(job) {
			script.WriteByte(' ')
			script.WriteString(shellquote.Quote(word))
		}
	}
	return script.String(), nil
}

// text is one job's command as a person would type it. It is what the job log
// knows the job by, so it does not depend on the slot.
func (c *Command) text(job *template.Job) (string, error) {
	slotless := *job
	slotless.Slot = 0
	if c.script {
		return c.scriptFor(&slotless)
	}
	words, err := c.argv(&slotless)
	return shellquote.Join(words), err
}

// Check looks the program up if it is the same for all jobs, so that a name
// that was mistyped is one error and not one for each input.
func (c *Command) Check() error {
	if c.script || c.words[0].HasPlaceholder() {
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
	if c.script {
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
