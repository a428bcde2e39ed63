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

	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/retry"
)

// runCommand runs the program of a command.
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

// taskEnv tells a program which task it does.
func taskEnv(t *queue.Task) []string {
	return []string{EnvTask + "=" + t.ID.String(), EnvToken + "=" + strconv.FormatUint(uint64(t.Lease.Token), 10)}
}

// find returns the file of the program.
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
		name = filepath.Join(cmd.Dir, name) // which without a Dir would lose the ./ of a name
	}
	path, err := proc.Look(name)
	if err != nil || filepath.IsAbs(path) || cmd.Dir == "" {
		return path, err
	}
	return filepath.Abs(path) // a PATH may have directories that are relative to this one
}

// neverStarts reports errors of a start that another attempt would not change.
// Those of the log are none.
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

// terminate asks a group to end. One that is stopped would not hear of it.
func terminate(p *proc.Process) {
	p.Signal(syscall.SIGTERM)
	p.Signal(syscall.SIGCONT)
}

// input gives bytes to a process.
type input struct {
	end  *os.File // the process's
	pipe *os.File // ours; nil if there is nothing to give
	done chan struct{}
}

// newInput starts giving bytes; no bytes are the null device.
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
		defer func() { _ = in.pipe.Close() }() // which tells that there is no more
		_, _ = in.pipe.Write(text)             // it need not be read
	}()
	return in, nil
}

// close is called when the process has ended.
func (in *input) close() {
	_ = in.end.Close()
	if in.pipe != nil {
		_ = in.pipe.SetWriteDeadline(now()) // one who has left the group may have the other end
	}
	<-in.done
}
