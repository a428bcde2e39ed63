package run

import (
	"fmt"
	"strings"
	"time"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/shellquote"
	"github.com/stintgo/stint/cmd/stint/internal/template"
)

// job is one command, from reading its input to its last attempt.
type job struct {
	template.Job
	priority stint.Priority
	key      string
	text     string // see Config.text

	attempts int           // made so far
	delay    time.Duration // before the last attempt
}

// tag returns the text that precedes each line of the job's output.
func (j *job) tag() string { return strings.Join(j.Args, " ") }

// emptyKey replaces an empty key, which has no limit in the scheduler. No input contains NUL.
const emptyKey = "\x00"

// job makes the job for an input. An error means that the input is invalid; the job then
// has what was made before the error.
func (c *Config) job(seq int, in item) (*job, error) {
	j := &job{Job: template.Job{Seq: seq, Args: in.args, Fields: in.fields}}
	var err error
	if j.text, err = c.text(&j.Job); err != nil {
		return j, err
	}
	if j.key, err = c.Key.String(&j.Job); err != nil {
		return j, fmt.Errorf("--key: %w", err)
	}
	if j.key == "" && c.KeyJobs > 0 {
		j.key = emptyKey
	}
	text, err := c.Priority.String(&j.Job)
	if err != nil {
		return j, fmt.Errorf("--priority: %w", err)
	}
	if text == "" {
		return j, nil
	}
	if j.priority, err = stint.ParsePriority(text); err != nil {
		return j, fmt.Errorf("--priority: %w", err)
	}
	return j, nil
}

// text returns the command of a job as it would be typed. The job log identifies the job by it, so
// it has the files of standard input and output, if these depend on the input, and not the slot.
func (c *Config) text(job *template.Job) (string, error) {
	slotless := *job
	slotless.Slot = 0
	text, err := c.Command.text(&slotless)
	if err != nil {
		return text, err
	}
	var in, out string
	if c.Stdin.Set {
		if in, err = c.Stdin.Path.String(&slotless); err != nil {
			return text, fmt.Errorf("--stdin: %w", err)
		}
	}
	if c.Stdout.Set {
		if out, err = c.Stdout.target(&slotless); err != nil {
			return text, fmt.Errorf("--stdout: %w", err)
		}
	}
	reads, writes := c.Stdin.Path.HasPlaceholder(), c.Stdout.Path.HasPlaceholder()
	if c.Command.shell() && (reads || writes) {
		text = shellquote.Join([]string{"sh", "-c", text})
	}
	if reads {
		text += " < " + shellquote.Join([]string{in})
	}
	if writes {
		text += " > " + shellquote.Join([]string{out})
	}
	return text, nil
}
