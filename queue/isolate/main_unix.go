//go:build unix

package isolate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"syscall"

	"github.com/stintgo/stint/internal/watcher"
)

// serve is what a process does that isolate has started. It reports false in
// others.
func serve(args []string, handlers map[string]isolated) (served bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	switch args[1] {
	case watcher.Arg:
		return true, watcher.Main(args[2:])
	case argHandler:
		return true, beHandler(os.Stdin, os.NewFile(fdAnswers, "answers"), handlers)
	}
	return false, nil
}

// fdAnswers is the descriptor that a handler's process writes to.
const fdAnswers = 3

var errByHand = errors.New("no task: a worker starts this process by itself")

// beHandler does the task that it reads.
func beHandler(in, out *os.File, handlers map[string]isolated) error {
	if info, err := out.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return errByHand
	}
	syscall.CloseOnExec(fdAnswers) // what the handler starts is not to answer
	var task order
	if err := readFrame(in, &task); err != nil || task.Task == nil {
		return errors.Join(errByHand, err)
	}
	h := handlers[task.Handler]
	if h == nil {
		return fmt.Errorf("no handler %q: is isolate.Main called with it in every process of the program?", task.Handler)
	}
	if task.Memory > 0 {
		debug.SetMemoryLimit(task.Memory / 10 * 9)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	go obey(in, cancel)
	return h.do(ctx, task.Task, func(a answer) error { return writeFrame(out, a) })
}

// obey ends the handler's context when the worker says so, or is gone. It ends
// with the process.
func obey(in io.Reader, cancel context.CancelCauseFunc) {
	var o order
	if err := readFrame(in, &o); err != nil {
		o.Stop = causeStopping
	}
	cancel(o.Stop.err())
}

// Kill kills all groups of this process at once: for a program that is to end and
// does not want to wait. It is called when what becomes of their attempts is
// settled, as after [queue.Queue.Halt], when Run has returned: it would be a failure
// of them otherwise.
func Kill() { watching.kill() }
