//go:build linux

package main_test

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScript runs the scripts of testdata/script: the program as its users see it, in
// commands, output and exit status. A script whose name begins with a row of the
// specification, as in C4_edit.txtar, is a test of that row. Tests that send signals, use
// a terminal or depend on what runs at the same time are in Go.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("LC_ALL", "C.UTF-8")
			env.Setenv("USER", "tester")
			env.Setenv("GORACE", "atexit_sleep_ms=0") // or each exit takes a second under the race detector
			env.Setenv("STINT_PATIENCE", "60s")       // clients wait for the server of the script to start
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":  exits,
			"full":   full,
			"taskid": setTaskID,
		},
		RequireUniqueNames: true,
	})
}

// exits STATUS PROGRAM [ARG...] runs a program, whose exit status must be STATUS.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS PROGRAM [ARG...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	status := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if status != want {
		ts.Fatalf("exit status %d, want %d", status, want)
	}
}

// full ARG... runs stint with a standard output that is full; its exit status must be 125.
func full(ts *testscript.TestScript, neg bool, args []string) {
	exits(ts, neg, append([]string{"125", "sh", "-c", `exec stint "$@" > /dev/full`, "stint"}, args...))
}

// taskid NAME sets a variable to the ID of a task, which the last command has printed.
func setTaskID(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: taskid NAME")
	}
	id := ts.ReadFile("stdout")
	if !taskID.MatchString(id) {
		ts.Fatalf("%q is not the ID of a task", id)
	}
	ts.Setenv(args[0], strings.TrimSpace(id))
}
