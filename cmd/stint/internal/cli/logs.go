package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
	"github.com/stintgo/stint/queue/isolate"
)

const logsLong = `Print what the command of a task has written to its standard output and error,
in all attempts. If servers share a store, the log is at the server that made the last
attempt, and the others fetch it from there.

Exit status: 0; 1 if there is no such task, or no log of it; 125 for errors.`

// logsFlags are the flags of stint logs.
type logsFlags struct {
	client
	follow bool
	tail   int
	tails  bool // --tail was given
}

func newLogs(s *streams) *cobra.Command {
	f := logsFlags{client: client{streams: s}}
	cmd := &cobra.Command{
		Use: "logs [flags] ID", Short: "Print what a task has written", Long: logsLong + idHelp, Args: oneTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.tails = cmd.Flags().Changed("tail"); f.tail < 0 {
				return fmt.Errorf("--tail %d: give a number of lines", f.tail)
			}
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error {
				id, err := server.ID(ctx, args[0])
				if err != nil {
					return found(err)
				}
				return found(f.copy(ctx, server, id))
			})
		},
	}
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "print new output until the task is finished")
	cmd.Flags().IntVarP(&f.tail, "tail", "n", 0, "begin with the last `N` lines (default: all)")
	f.registerServer(cmd) // a log is printed unchanged: there is no --json
	return cmd
}

// The server notifies clients that follow a log, except while it cannot be reached. The pauses
// limit the number of calls for a command that writes all the time.
const (
	logsEvery  = 200 * time.Millisecond // after no new output
	logsPieces = 20 * time.Millisecond  // after new output
	logsTries  = 10                     // failed reads of a log while the server is there
)

// noLog returns the error for a log that the server does not have. Of several servers that
// share the tasks, the one that has run a task has its log.
func noLog(t *queue.Task) error {
	err := fmt.Errorf("there is no log of task %s: it is %s", t.ID, view.End(t))
	for _, step := range slices.Backward(t.Steps) {
		if step.On == queue.OnClaim {
			return fmt.Errorf("%w; it was last run by %s, whose server keeps the log while there is room", err, step.By)
		}
	}
	return err
}

// copy prints the log, and follows it if asked to, also while the server cannot be
// reached, since it may be started again.
func (f *logsFlags) copy(ctx context.Context, server *remote.Server, id queue.ID) error {
	task, err := server.Get(ctx, id) // before the log, so that later output is not missed
	if err != nil {
		return err
	}
	from, err := f.copyEnd(ctx, server, id)
	if err != nil {
		return err
	}
	for away, failed := false, 0; ; {
		over := !f.follow || task.State.Finished()
		had := from
		from, err = f.copyFrom(ctx, server, id, from, !over)
		if failed++; from != had || !errors.Is(err, queue.ErrUnavailable) {
			failed = 0
		}
		switch {
		case over && err == nil:
			return f.warnLost(&task)
		case over && errors.Is(err, queue.ErrNotFound):
			return nothing(noLog(&task))
		case errors.Is(err, httpstore.ErrNoAnswer):
			return err // the server is there, and may be stopped
		case err != nil && from != had && errors.Is(err, queue.ErrUnavailable):
			// The reader of the output paused for longer than the server waits: the rest follows.
		case err != nil && !f.follow, over && failed == logsTries,
			err != nil && !errors.Is(err, queue.ErrUnavailable) && !errors.Is(err, queue.ErrNotFound):
			return err
		}
		if failed == logsTries {
			printTo(f.err, "stint: %v; output continues when it can be read\n", err)
		}
		seen, err := server.Get(ctx, id)
		switch {
		case err == nil:
			task, away = seen, false
		case !errors.Is(err, queue.ErrUnavailable), errors.Is(err, httpstore.ErrNoAnswer):
			return err
		case !away && f.follow:
			printTo(f.err, "stint: the server cannot be reached; output continues when it can\n")
			away = true
		}
		if err != nil {
			failed = 0 // the server failed, not the log
		} else if !over && task.State.Finished() {
			continue
		}
		if err := pause(ctx, from != had); err != nil {
			return err
		}
	}
}

// copyEnd prints the last lines of the log if --tail asks for them, and returns where
// they end. A missing log ends at its beginning.
func (f *logsFlags) copyEnd(
	ctx context.Context, server *remote.Server, id queue.ID,
) (at httpstore.LogPosition, err error) {
	if !f.tails {
		return at, nil
	}
	for size := int64(tailFirst); ; size *= tailGrows {
		var end []byte
		end, at, err = readEnd(ctx, server, id, size)
		if errors.Is(err, queue.ErrNotFound) {
			return httpstore.LogPosition{}, nil
		}
		if err != nil {
			return httpstore.LogPosition{}, err
		}
		if lines, enough := lastLines(end, f.tail); enough || at.Offset == 0 {
			_, err := f.out.Write(lines)
			at.Offset += int64(len(end))
			return at, err
		}
	}
}

// The end of a log is read in pieces that grow until one has enough lines.
const (
	tailFirst = 16 << 10
	tailGrows = 4
)

// readEnd reads the last bytes of a log, and returns their offset.
func readEnd(
	ctx context.Context, server *remote.Server, id queue.ID, size int64,
) (end []byte, at httpstore.LogPosition, err error) {
	log, at, err := server.LogEnd(ctx, id, size)
	if err != nil {
		return nil, at, err
	}
	defer func() { _ = log.Close() }() // only read
	end, err = io.ReadAll(log)
	return end, at, err
}

// lastLines returns the last n lines of a text, and whether these are certainly whole:
// the first of fewer than n lines may have begun before the text.
func lastLines(text []byte, n int) (lines []byte, enough bool) {
	at := len(text)
	if n > 0 && at > 0 && text[at-1] == '\n' {
		at-- // it ends the last line
	}
	for ; n > 0; n-- {
		if at = bytes.LastIndexByte(text[:at], '\n'); at < 0 {
			return text, false
		}
	}
	return text[min(at+1, len(text)):], true
}

// pause waits between two reads of a log.
func pause(ctx context.Context, something bool) error {
	wait := logsEvery
	if something {
		wait = logsPieces
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// copyFrom prints the log from a position on, after waiting for output if the log is
// followed, and returns the new position.
func (f *logsFlags) copyFrom(
	ctx context.Context, server *remote.Server, id queue.ID, from httpstore.LogPosition, wait bool,
) (httpstore.LogPosition, error) {
	log, at, err := server.Log(ctx, id, from, wait)
	if err != nil {
		return from, err
	}
	defer func() { _ = log.Close() }() // only read
	n, err := io.Copy(f.out, log)
	at.Offset += n
	return at, err
}

// warnLost reports the output that is missing in a log. The log itself may not say so if
// the disk was full.
func (f *logsFlags) warnLost(t *queue.Task) error {
	if exit, ok := isolate.ExitOf(t); ok && t.Kind == serve.Kind && exit.Lost != "" {
		printTo(f.err, "stint: a part of the output is missing: %s\n", exit.Lost)
	}
	return nil
}
