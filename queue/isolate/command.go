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
	// Args are the program and its arguments. A program name without a slash is looked
	// up in the worker's PATH.
	Args []string `json:"args"`
	// Dir is the working directory, an absolute path; empty means that of the worker.
	Dir string `json:"dir,omitempty"`
	// Env is added to the worker's environment, as NAME=value.
	Env []string `json:"env,omitempty"`
	// Stdin is the content of the standard input.
	Stdin []byte `json:"stdin,omitempty"`
}

// Variables that are set in the environment of the program, in addition to those of the
// worker and of the [Command].
const (
	EnvTask  = "STINT_TASK"  // the ID of its task
	EnvToken = "STINT_TOKEN" // the fencing token of its lease: later leases have higher ones
)

// Validate reports every problem that makes the command invalid on any machine. Its
// errors wrap [queue.ErrInvalid].
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
	for i, variable := range c.Env { // errors show neither values nor texts without a name: they may be secrets
		name, value, ok := strings.Cut(variable, "=")
		switch problem := cmp.Or(notText(name), notText(value)); {
		case !ok || name == "":
			wrong("variable %d of its environment is not NAME=value", i+1)
		case problem != "":
			wrong("variable %.40q of its environment "+problem, name)
		}
	}
	return errors.Join(errs...)
}

// notText returns why text cannot be stored with a task, which is kept as JSON, or "" if
// it can.
func notText(text string) string {
	switch {
	case strings.ContainsRune(text, 0):
		return "has a NUL character"
	case !utf8.ValidString(text):
		return "is not text in UTF-8; in a script, have printf write its bytes"
	default:
		return ""
	}
}

// Commands returns a handler for tasks whose payload is a [Command]. It panics if cfg is
// not valid.
//
// The [Exit] of the last attempt is stored with the task as JSON: as its result if the
// attempt succeeded, and as its checkpoint otherwise; see [ExitOf].
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
			text, _ := json.Marshal(exit) // numbers and valid text: it cannot fail
			j.Save(text)
		}
		return err
	}
}

// ExitOf returns how the last attempt of a task of [Commands] ended. It reports false if
// no attempt has ended, or if the worker died before it could store the [Exit].
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
