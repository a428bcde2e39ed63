package view

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
)

// Task is a task as ls, show and wait print it in JSON: the fields of [queue.Task], with
// the command as readable fields, and with payloads, checkpoints and results that are
// JSON as JSON. Programs read it, so fields may be added, but no field changes its
// meaning: docs/serve.md lists them.
type Task struct {
	queue.Task

	Command    *Command `json:"command,omitempty"` // of a task of kind command, instead of payload
	ExitStatus *int     `json:"exit_status,omitempty"`
	Exit       *Exit    `json:"exit,omitempty"` // instead of checkpoint and result

	// One of each pair is set: the value if it is JSON, otherwise its bytes.
	Payload          json.RawMessage `json:"payload,omitempty"`
	PayloadBase64    []byte          `json:"payload_base64,omitempty"`
	Checkpoint       json.RawMessage `json:"checkpoint,omitempty"`
	CheckpointBase64 []byte          `json:"checkpoint_base64,omitempty"`
	Result           json.RawMessage `json:"result,omitempty"`
	ResultBase64     []byte          `json:"result_base64,omitempty"`
}

// Command is the command of a task of kind command: a shell script, or a program and its
// arguments.
type Command struct {
	Script     string   `json:"script,omitempty"`
	Args       []string `json:"args,omitempty"`
	Dir        string   `json:"dir,omitempty"`
	Env        []string `json:"env,omitempty"` // names, or NAME=value with --reveal
	StdinBytes int      `json:"stdin_bytes,omitempty"`
	Stdin      []byte   `json:"stdin_base64,omitempty"` // only with --reveal
}

// Exit is the result of the last attempt of a command.
type Exit = isolate.Exit

// TaskJSON returns a task as it is printed in JSON. Without reveal it omits the values of
// a command's variables and its standard input, which may be secrets, and the password in the
// URL of an upload.
func TaskJSON(t *queue.Task, reveal bool) Task {
	shown := Task{Task: *t}
	if !reveal {
		shown.Task = hideSecrets(*t)
		t = &shown.Task
	}
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

// valueOf returns b as JSON if it is JSON, and otherwise as bytes.
func valueOf(b []byte) (value json.RawMessage, bytes []byte) {
	if json.Valid(b) && utf8.Valid(b) {
		return b, nil
	}
	return nil, b
}

// commandOf returns the command of a task of kind command.
func commandOf(t *queue.Task) (cmd isolate.Command, ok bool) {
	return cmd, t.Kind == serve.Kind && json.Unmarshal(t.Payload, &cmd) == nil
}

// script returns the script of a command that is a shell script.
func script(cmd *isolate.Command) (text string, ok bool) {
	if len(cmd.Args) == 3 && cmd.Args[0] == "sh" && cmd.Args[1] == "-c" {
		return cmd.Args[2], true
	}
	return "", false
}

// variables returns the variables that a command adds to the environment: names, with
// reveal also their values.
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
