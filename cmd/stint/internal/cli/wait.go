package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
)

const waitLong = `Wait until tasks are finished.

While the server cannot be reached, the command waits until it can, and says so. A task counts as
finished when its end is durable: while a full disk or a broken database keeps the end from
being written, the command waits, and says why.

Exit status: 0 if all have succeeded; otherwise that of the first, in the order given,
that has not: the exit status of its command, 128 plus the number of the signal that
ended it, 124 if it timed out, 130 if it was cancelled, 1 if it is unknown; 124 too if
--timeout expired; 125 for errors.`

// waitFlags are the flags of stint wait.
type waitFlags struct {
	client
	timeout time.Duration
}

func newWait(s *streams) *cobra.Command {
	f := waitFlags{client: client{streams: s}}
	cmd := &cobra.Command{
		Use: "wait [flags] ID...", Short: "Wait until tasks are finished", Long: waitLong + idHelp,
		Example: "  stint wait $(stint submit make test) && echo passed", Args: someTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.timeout < 0 {
				return errors.New("--timeout is negative: give a time, as in 30s, or leave it out to wait without a limit")
			}
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return f.wait(ctx, server, args)
			})
		},
	}
	secondsVar(cmd.Flags(), &f.timeout, "timeout", 0, "give up after `TIME`")
	f.register(cmd)
	return cmd
}

var errWaited = errors.New("the tasks are not finished yet, and --timeout has expired; they continue")

// wait waits for all tasks.
func (f *waitFlags) wait(ctx context.Context, server *remote.Server, texts []string) error {
	waiting := ctx
	if f.timeout > 0 {
		var stop context.CancelFunc
		waiting, stop = context.WithTimeout(ctx, f.timeout)
		defer stop()
	}
	failed := func(err error) error {
		if waiting.Err() != nil && ctx.Err() == nil {
			return &exitError{exitTimeout, errWaited}
		}
		return found(err)
	}
	ids, err := server.IDs(waiting, texts)
	if err != nil {
		return failed(err)
	}
	// A server that cannot be reached may be started again soon, so stint wait waits for it, but
	// not for a server that was never reached.
	if _, err := server.Get(waiting, ids[0]); err != nil {
		return failed(err)
	}
	status := 0
	for _, id := range ids {
		task, err := server.Wait(waiting, id, f.away)
		if err != nil {
			return failed(err)
		}
		if err := f.report(&task); err != nil {
			return err
		}
		if status == 0 {
			status = statusOf(&task)
		}
	}
	if status != 0 {
		return &exitError{status: status}
	}
	return nil
}

// away reports why the server cannot be reached while the command waits for a task.
func (c *client) away(err error) {
	printTo(c.err, "stint: %v; waiting for the task continues when the server can be reached\n", c.explain(err, c.where()))
}

// report prints how a task has ended; without --json only if it did not succeed.
func (f *waitFlags) report(t *queue.Task) error {
	if f.json {
		return f.print(view.TaskJSON(t, false))
	}
	if t.State != queue.Succeeded {
		printTo(f.err, "stint: task %s: %s\n", t.ID, view.End(t))
	}
	return nil
}

// statusOf returns the exit status for the end of a task.
func statusOf(t *queue.Task) int {
	if t.State == queue.Succeeded {
		return 0
	}
	if t.State == queue.Cancelled {
		return exitCancelled
	}
	if exit, ok := isolate.ExitOf(t); ok && exit.Code() != 0 {
		return exit.Code()
	}
	return exitNothing
}
