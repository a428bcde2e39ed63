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
	"github.com/stintgo/stint/queue"
)

// serve runs the handler or the watcher that args name. It reports false if isolate did
// not start this process.
func serve(args []string, handlers map[string]AnyHandler) (served bool, err error) {
	if len(args) < 2 {
		return false, nil
	}
	switch args[1] {
	case watcher.Arg:
		return true, watcher.Main(args[2:])
	case argHandler:
		return true, serveHandler(os.Stdin, os.NewFile(fdAnswers, "answers"), handlers)
	}
	return false, nil
}

// fdAnswers is the descriptor that a handler's process writes its answers to.
const fdAnswers = 3

var errByHand = errors.New("no task: a worker starts this process by itself")

// serveHandler reads a task from in, runs its handler, and writes the answers to out.
func serveHandler(in, out *os.File, handlers map[string]AnyHandler) error {
	if info, err := out.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return errByHand
	}
	syscall.CloseOnExec(fdAnswers) // the handler's children must not write answers
	var task order
	if err := readFrame(in, &task); err != nil || task.Task == nil {
		return errors.Join(errByHand, err)
	}
	h := handlers[task.Kind]
	if h == nil {
		return fmt.Errorf("no handler of the kind %q: call isolate.Main with it in every process of the program", task.Kind)
	}
	if task.Memory > 0 {
		debug.SetMemoryLimit(task.Memory / 10 * 9)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	attempt, syncs := &queue.Attempt{Task: *task.Task}, make(chan struct{}, 1)
	stored := attempt.Relay(func() {
		select {
		case syncs <- struct{}{}:
		default: // the next report serves this Sync as well
		}
	})
	go receiveOrders(in, cancel, stored)
	return h.do(ctx, attempt, syncs, func(a answer) error { return writeFrame(out, a) })
}

// receiveOrders cancels the handler's context when the worker orders it or has ended, and passes
// the worker's answers to Sync on. It may block until the process ends.
func receiveOrders(in io.Reader, cancel context.CancelCauseFunc, stored func(n int, why error)) {
	for {
		var o order
		if err := readFrame(in, &o); err != nil {
			cancel(causeStopping.err())
			return
		}
		if o.Stop != "" {
			cancel(o.Stop.err())
		}
		switch {
		case o.Lost != "":
			stored(o.Stored, o.Lost.err())
		case o.Stored > 0:
			stored(o.Stored, nil)
		}
	}
}

// Kill sends SIGKILL to all groups of this process, for a program that must end without
// waiting for them. Call it when the attempts are already settled, as after
// [queue.Queue.Halt] once Run has returned; an attempt that is not settled fails.
func Kill() { groups.kill() }
