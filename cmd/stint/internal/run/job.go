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

// makeJob makes the job for an input. An error means that the input is invalid.
func (r *Run) makeJob(seq int, in item) (*job, error) {
	j := &job{Job: template.Job{Seq: seq, Args: in.args, Fields: in.fields}}
	var err error
	if j.text, err = r.cfg.Command.text(&j.Job); err != nil {
		return j, err
	}
	if r.cfg.Stdout.Set {
		if _, err = r.cfg.Stdout.target(&j.Job); err != nil {
			return j, fmt.Errorf("--stdout: %w", err)
		}
	}
	if j.key, err = r.cfg.Key.String(&j.Job); err != nil {
		return j, fmt.Errorf("--key: %w", err)
	}
	if j.key == "" && r.cfg.KeyJobs > 0 {
		j.key = emptyKey
	}
	text, err := r.cfg.Priority.String(&j.Job)
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
