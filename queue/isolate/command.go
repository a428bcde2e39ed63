package isolate

import (
	"cmp"
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
	wrong := func(format string, about any) {
		errs = append(errs, fmt.Errorf("%w: command: "+format, queue.ErrInvalid, about))
	}
	if len(c.Args) == 0 || c.Args[0] == "" {
		wrong("%sthere is no program in it", "")
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		wrong("its directory is %q: make it an absolute path", c.Dir)
	}
	for _, text := range slices.Concat([]string{c.Dir}, c.Args) {
		if problem := notText(text); problem != "" {
			wrong("%.40q "+problem, text)
		}
	}
	for i, variable := range c.Env { // its value may be a secret, and so may all of it if it has no name
		name, value, ok := strings.Cut(variable, "=")
		switch problem := cmp.Or(notText(name), notText(value)); {
		case !ok || name == "":
			wrong("variable %d of its environment is no NAME=value", i+1)
		case problem != "":
			wrong("variable %.40q of its environment "+problem, name)
		}
	}
	return errors.Join(errs...)
}

// notText says why a text cannot be kept with a task, which is JSON; empty if it can.
func notText(text string) string {
	switch {
	case strings.ContainsRune(text, 0):
		return "has a NUL character"
	case !utf8.ValidString(text):
		return "is no text in UTF-8; in a script, have printf write its bytes"
	default:
		return ""
	}
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
		exit, err := cfg.runCommand(ctx, j.Attempt, &j.Args)
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
