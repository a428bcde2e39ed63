package isolate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// Command is the payload of a task that runs a program.
type Command struct {
	// Args are the program and its arguments. A name without a slash is looked up
	// in the worker's PATH.
	Args []string `json:"args"`
	// Dir is where it runs, an absolute path; empty is where the worker does.
	Dir string `json:"dir,omitempty"`
	// Env is added to the environment of the worker, as NAME=value.
	Env []string `json:"env,omitempty"`
	// Stdin is what it reads from its standard input.
	Stdin []byte `json:"stdin,omitempty"`
}

// The variables that a program finds in its environment, besides those of the
// worker and of its [Command].
const (
	EnvTask  = "STINT_TASK"  // the ID of its task
	EnvToken = "STINT_TOKEN" // the token of its lease, which grows: for systems that can refuse an older one
)

// Validate reports what keeps a command from being run anywhere. Its errors
// wrap [queue.ErrInvalid].
func (c *Command) Validate() error {
	var errs []error
	wrong := func(format string, about string) {
		errs = append(errs, fmt.Errorf("%w: command: "+format, queue.ErrInvalid, about))
	}
	if len(c.Args) == 0 || c.Args[0] == "" {
		wrong("%sthere is no program in it", "")
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		wrong("its directory is %q: make it an absolute path", c.Dir)
	}
	for _, text := range slices.Concat([]string{c.Dir}, c.Args, c.Env) {
		if strings.ContainsRune(text, 0) {
			wrong("%.40q has a NUL character", text)
		}
		if !utf8.ValidString(text) { // JSON would make something else of it
			wrong("%.40q is no text in UTF-8; in a script, have printf write its bytes", text)
		}
	}
	for _, variable := range c.Env {
		if name, _, ok := strings.Cut(variable, "="); !ok || name == "" {
			wrong("%.40q in its environment is no NAME=value", variable)
		}
	}
	return errors.Join(errs...)
}

// Commands returns a handler for tasks whose payload is a [Command]. It panics if
// the configuration is not valid.
//
// How the last attempt ended is kept with the task, as an [Exit] in JSON: as its
// result if it succeeded, and else as its checkpoint; see [ExitOf].
func Commands(cfg Config) func(context.Context, *queue.Job[Command]) error {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	cfg = cfg.withDefaults()
	return func(ctx context.Context, j *queue.Job[Command]) error {
		if err := j.Args.Validate(); err != nil {
			return retry.Permanent(err)
		}
		exit, err := cfg.runCommand(ctx, &j.Task, &j.Args)
		if err == nil {
			return j.Return(exit)
		}
		if exit != nil {
			text, _ := json.Marshal(exit) // numbers and valid text
			j.Save(text)
		}
		return err
	}
}

// ExitOf returns how the last attempt of a task of [Commands] ended. It reports
// false if none has, or the worker was not there any more to tell.
func ExitOf(t *queue.Task) (e Exit, ok bool) {
	text := t.Checkpoint
	if t.State == queue.Succeeded {
		text = t.Result
	}
	if len(text) == 0 || json.Unmarshal(text, &e) != nil {
		return Exit{}, false
	}
	return e, true
}
