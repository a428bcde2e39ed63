package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue/isolate"
)

// commandWords returns the words of the command to submit. Flags end at the first word,
// with one exception: a word that is a shell script is the whole command, so flags may
// follow it. A "--" before the command disables the exception.
func commandWords(cmd *cobra.Command, args []string) ([]string, error) {
	if len(args) < 2 || cmd.ArgsLenAtDash() == 0 || !isScript(args[0]) {
		return args, nil
	}
	if next := args[1]; len(next) < 2 || next[0] != '-' {
		return args, nil
	}
	flags := cmd.Flags()
	flags.SetInterspersed(true)
	err := parseMore(cmd, args[1:])
	switch {
	case err != nil:
		return nil, fmt.Errorf("after %q: %w; if it is a word of the command, put -- before the command", args[0], err)
	case flags.NArg() > 0:
		return nil, fmt.Errorf("%q is a script for the shell, and %q follows it: write one script, or put -- before a "+
			"command of several words", args[0], flags.Arg(0))
	}
	return args[:1], nil
}

// parseMore parses flags that follow a word, after cobra has parsed those before it.
func parseMore(cmd *cobra.Command, args []string) error {
	if err := cmd.Flags().Parse(args); err != nil {
		return cmd.FlagErrorFunc()(cmd, err)
	}
	if help, err := cmd.Flags().GetBool("help"); help && err == nil {
		return pflag.ErrHelp // cobra prints the help then
	}
	return refuseEmpty(cmd, nil)
}

// isScript reports whether a word is a shell script and not a program.
func isScript(word string) bool {
	if !run.LooksLikeScript([]string{word}) {
		return false
	}
	_, err := exec.LookPath(word) // the program [ has shell syntax in its name
	return err != nil
}

// payloadOf returns the payload of the task.
func (f *submitFlags) payloadOf(args []string) ([]byte, error) {
	if f.kind != serve.Kind {
		switch {
		case len(args) > 0:
			return nil, fmt.Errorf("a task of --kind %s has a --payload and no command", f.kind)
		case len(f.env) > 0 || f.dir != "" || f.stdin != "":
			return nil, fmt.Errorf("--env, --dir and --stdin are of commands; a task of --kind %s has a --payload", f.kind)
		case f.payload != "" && !json.Valid([]byte(f.payload)):
			return nil, fmt.Errorf("--payload %.40q is not JSON; a JSON string needs its own quotes", f.payload)
		}
		return []byte(f.payload), nil
	}
	if len(args) == 0 || f.payload != "" {
		return nil, errors.New("give a command; --payload is for tasks of another --kind")
	}
	cmd := isolate.Command{Args: args}
	if run.LooksLikeScript(args) {
		cmd.Args = []string{"sh", "-c", args[0]}
	}
	var errs [4]error
	cmd.Dir, errs[0] = filepath.Abs(f.dir)
	cmd.Env, errs[1] = f.environment()
	cmd.Stdin, errs[2] = f.input()
	errs[3] = cmd.Validate()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return json.Marshal(cmd)
}

// environment returns the variables to add to the environment of the server.
func (f *submitFlags) environment() (env []string, err error) {
	for _, entry := range f.env {
		name, _, hasValue := strings.Cut(entry, "=")
		if !hasValue {
			value, ok := os.LookupEnv(name)
			if !ok {
				return nil, fmt.Errorf("--env %s: %s is not set here; set it, or give a value, as in --env %s=VALUE",
					entry, entry, entry)
			}
			entry += "=" + value
		}
		env = append(env, entry)
	}
	return env, nil
}

// input returns the standard input of the command: at most [serve.StdinMax] bytes.
func (f *submitFlags) input() ([]byte, error) {
	if f.stdin == "" {
		return nil, nil
	}
	file := f.in
	if f.stdin != "-" {
		var err error
		if file, err = os.Open(f.stdin); err != nil {
			return nil, fmt.Errorf("--stdin: %w", err)
		}
		defer file.Close() //nolint:errcheck // only read
	}
	text, err := io.ReadAll(io.LimitReader(file, serve.StdinMax+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("--stdin: %w", err)
	case len(text) > serve.StdinMax:
		return nil, fmt.Errorf("--stdin %s: it is longer than %d bytes, the limit for input stored with a task: "+
			"have the command read a file, as in 'sort < FILE'", f.stdin, serve.StdinMax)
	}
	return text, nil
}
