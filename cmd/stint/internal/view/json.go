package view

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
)

// Task is a task as ls, show and wait print it in JSON: the fields of [queue.Task], but
// with what a command is in words, and with payloads, checkpoints and results that are
// JSON as what they are. Programs read it, so fields may be added, and none changes its
// meaning: docs/serve.md names them.
type Task struct {
	queue.Task

	Command    *Command `json:"command,omitempty"` // of a task of kind command, instead of payload
	ExitStatus *int     `json:"exit_status,omitempty"`
	Exit       *Exit    `json:"exit,omitempty"` // instead of checkpoint and result

	// Of each pair one is set: the value if it is JSON, and else its bytes.
	Payload          json.RawMessage `json:"payload,omitempty"`
	PayloadBase64    []byte          `json:"payload_base64,omitempty"`
	Checkpoint       json.RawMessage `json:"checkpoint,omitempty"`
	CheckpointBase64 []byte          `json:"checkpoint_base64,omitempty"`
	Result           json.RawMessage `json:"result,omitempty"`
	ResultBase64     []byte          `json:"result_base64,omitempty"`
}

// Command is what a task of kind command runs: a script for the shell, or a program and
// its arguments.
type Command struct {
	Script     string   `json:"script,omitempty"`
	Args       []string `json:"args,omitempty"`
	Dir        string   `json:"dir,omitempty"`
	Env        []string `json:"env,omitempty"` // names, or NAME=value if that is to be revealed
	StdinBytes int      `json:"stdin_bytes,omitempty"`
	Stdin      []byte   `json:"stdin_base64,omitempty"` // only if it is to be revealed
}

// Exit is how the last attempt of a command ended.
type Exit = isolate.Exit

// TaskJSON returns a task as it is printed in JSON. The values of a command's variables
// and its standard input are left out unless they are to be revealed: they may be
// secrets.
func TaskJSON(t *queue.Task, reveal bool) Task {
	shown := Task{Task: *t}
	if cmd, ok := commandOf(t); ok {
		shown.Command = &Command{Dir: cmd.Dir, Env: variables(&cmd, reveal), StdinBytes: len(cmd.Stdin)}
		if script, ok := script(&cmd); ok {
			shown.Command.Script = script
		} else {
			shown.Command.Args = cmd.Args
		}
		if reveal {
			shown.Command.Stdin = cmd.Stdin
		}
		if exit, ok := isolate.ExitOf(t); ok {
			code := exit.Code()
			shown.Exit, shown.ExitStatus = &exit, &code
			return shown
		}
	} else {
		shown.Payload, shown.PayloadBase64 = valueOf(t.Payload)
	}
	shown.Checkpoint, shown.CheckpointBase64 = valueOf(t.Checkpoint)
	shown.Result, shown.ResultBase64 = valueOf(t.Result)
	return shown
}

// valueOf returns bytes as JSON if they are JSON, and else as bytes.
func valueOf(b []byte) (value json.RawMessage, bytes []byte) {
	if json.Valid(b) && utf8.Valid(b) {
		return b, nil
	}
	return nil, b
}

// commandOf returns the command of a task that is one.
func commandOf(t *queue.Task) (cmd isolate.Command, ok bool) {
	return cmd, t.Kind == serve.Kind && json.Unmarshal(t.Payload, &cmd) == nil
}

// script returns the script of a command that is one for the shell.
func script(cmd *isolate.Command) (text string, ok bool) {
	if len(cmd.Args) == 3 && cmd.Args[0] == "sh" && cmd.Args[1] == "-c" {
		return cmd.Args[2], true
	}
	return "", false
}

// variables are what a command adds to the environment: names, with their values if
// these are to be revealed.
func variables(cmd *isolate.Command, reveal bool) []string {
	if reveal {
		return cmd.Env
	}
	var names []string
	for _, entry := range cmd.Env {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	return names
}
