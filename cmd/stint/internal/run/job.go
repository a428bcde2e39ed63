package run

import (
	"fmt"
	"strings"
	"time"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/template"
)

// job is one command, from reading its input to its last attempt.
type job struct {
	template.Job
	priority stint.Priority
	key      string
	text     string // the command, as in the job log

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
	if j.text, err = c.Command.text(&j.Job); err != nil {
		return j, err
	}
	if c.Stdout.Set {
		if _, err = c.Stdout.target(&j.Job); err != nil {
			return j, fmt.Errorf("--stdout: %w", err)
		}
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
