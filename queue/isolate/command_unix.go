//go:build unix

package isolate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// runCommand runs the program of cmd for the attempt.
func (c *Config) runCommand(ctx context.Context, a *queue.Attempt, cmd *Command) (*Exit, error) {
	path, err := find(cmd)
	if err != nil {
		if err = attribute(err); queue.IsShortage(err) {
			return nil, err
		}
		return &Exit{Status: proc.LookStatus(err)}, retry.Permanent(fmt.Errorf("cannot be run: %w", err))
	}
	in, err := newInput(cmd.Stdin)
	if err != nil {
		return nil, attribute(err)
	}
	defer in.close()
	exit, err := c.run(ctx, a, &program{
		path: path, args: cmd.Args, dir: cmd.Dir, stdin: in.end,
		env:  slices.Concat(cmd.Env, taskEnv(&a.Task)),
		stop: func(p *proc.Process, _ error) { terminate(p) },
	})
	if exit == nil && neverStarts(err) {
		return &Exit{Status: proc.LookStatus(err)}, retry.Permanent(err)
	}
	return exit, err
}

// taskEnv returns the variables that name the task and its lease.
func taskEnv(t *queue.Task) []string {
	return []string{EnvTask + "=" + t.ID.String(), EnvToken + "=" + strconv.FormatUint(uint64(t.Lease.Token), 10)}
}

// find returns the path of the program's file.
func find(cmd *Command) (string, error) {
	if cmd.Dir != "" {
		if info, err := os.Stat(cmd.Dir); err != nil {
			return "", err
		} else if !info.IsDir() {
			return "", fmt.Errorf("%s: %w", cmd.Dir, syscall.ENOTDIR)
		}
	}
	name := cmd.Args[0]
	if cmd.Dir != "" && strings.ContainsRune(name, '/') && !filepath.IsAbs(name) {
		name = filepath.Join(cmd.Dir, name) // only with a Dir, because Join removes a leading ./
	}
	path, err := proc.Look(name)
	if err != nil || filepath.IsAbs(path) || cmd.Dir == "" {
		return path, err
	}
	return filepath.Abs(path) // PATH may have directories that are relative to the worker's
}

// neverStarts reports whether err is an error of the start of a program that would occur
// in every attempt. Errors of the log do not count.
func neverStarts(err error) bool {
	if _, ok := errors.AsType[*startError](err); !ok {
		return false
	}
	for _, errno := range []syscall.Errno{
		syscall.E2BIG, syscall.ENOEXEC, syscall.EACCES, syscall.ENOENT, syscall.ENOTDIR, syscall.EPERM,
	} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// terminate sends SIGTERM to a group, and SIGCONT, because a stopped process does not act
// on SIGTERM.
func terminate(p *proc.Process) {
	p.Signal(syscall.SIGTERM)
	p.Signal(syscall.SIGCONT)
}

// input writes bytes to the standard input of a process.
type input struct {
	end  *os.File // the process's end: a pipe, or the null device
	pipe *os.File // the end that is written; nil if there are no bytes
	done chan struct{}
}

// newInput starts to write text. Without text the input is the null device.
func newInput(text []byte) (in *input, err error) {
	in = &input{done: make(chan struct{})}
	if len(text) == 0 {
		close(in.done)
		in.end, err = os.Open(os.DevNull)
		return in, err
	}
	if in.end, in.pipe, err = os.Pipe(); err != nil {
		return nil, err
	}
	go func() {
		defer close(in.done)
		defer func() { _ = in.pipe.Close() }() // the process reads end of file
		_, _ = in.pipe.Write(text)             // fails if the process does not read all
	}()
	return in, nil
}

// close ends the writing and closes the pipe. It is called after the process has ended.
func (in *input) close() {
	_ = in.end.Close()
	if in.pipe != nil {
		_ = in.pipe.SetWriteDeadline(clock.Now()) // a process that left the group may hold the other end
	}
	<-in.done
}
