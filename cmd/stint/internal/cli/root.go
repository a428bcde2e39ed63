// Package cli is the command line of stint: it turns flags into the configuration of the
// packages that do the work.
package cli

// The files; a file of a command has its flags, its help and its output:
//
//   - root.go: Main, the tree of commands, errors and exit statuses
//   - terminal.go: what is known of the terminal
//   - args.go: checks of the number of arguments
//   - empty.go: flags with an empty value
//   - seconds.go: durations as flags, in seconds or with a unit
//   - version.go: stint version
//   - bench.go: stint bench
//
// stint run and what shares slots between processes:
//
//   - run.go: stint run
//   - flags.go: its flags
//   - config.go: its flags, checked and as a configuration
//   - source.go: its inputs
//   - closers.go: commands that would close the slot's file, and so release the slot
//   - sem.go: stint sem
//   - shm.go: stint shm ls and rm
//
// stint serve, and the clients of a server:
//
//   - serve.go: stint serve
//   - groups.go: its groups of queues
//   - client.go: how a client finds and calls its server
//   - submit.go: stint submit
//   - command.go: the command of a submitted task
//   - ownflags.go: warns of flags that became words of the command
//   - knownqueue.go: warns of queues that nothing knows
//   - from.go: submit --from
//   - fromlines.go: its lines as tasks
//   - fromjson.go: its JSON lines
//   - filter.go: the flags that select tasks
//   - ls.go: stint ls
//   - dead.go: stint dead
//   - show.go: stint show, why and stats
//   - wait.go: stint wait
//   - logs.go: stint logs
//   - orders.go: stint pause, resume, cancel, retry
//   - edit.go: stint edit
//   - jobs.go: stint jobs
//   - nodes.go: stint nodes
//   - store.go: stint store copy
//   - upload.go: stint upload and transfers
//   - limit.go: stint limit
//   - limitvalues.go: the values of its flags
//   - schedule.go: stint schedule
//   - scheduleadd.go: stint schedule add

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
)

// exitOwn is the exit status for errors of stint itself, as in env(1), timeout(1) and
// xargs(1): wrong usage, or an input, an output or a job log that cannot be used. It is
// above 0 to 101, which count failed jobs.
const exitOwn = proc.ExitOwn

// exitError ends the program with a status.
type exitError struct {
	status int
	err    error // to print, or nil if everything was printed
}

// Error returns the message to print.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit status %d", e.status)
	}
	return e.err.Error()
}

// Unwrap returns the error to print.
func (e *exitError) Unwrap() error { return e.err }

const longHelp = `Stint decides how much runs at once, and what goes first.

  stint run     runs a command for each line of input, in parallel, now
  stint sem     runs one command when a slot is free; processes of this machine share a
                number of slots by a name; shm lists and removes such names
  stint serve   keeps commands in a directory and runs them, also after kill -9
  stint submit  sends a command to the server; ls, show, why, wait, logs, pause, resume,
                cancel, retry, edit, dead and stats show and change submitted commands;
                limit changes how much of a queue, a key or all queues runs, starts and
                waits, jobs how many commands the server runs at once; nodes lists the
                servers that share the tasks, and store copy moves them to another store
  stint schedule submits commands to a server at the ticks of cron expressions
  stint upload  uploads files, and continues after interruptions; transfers lists uploads
  stint bench   measures the scheduler on this machine`

const rootExamples = `  find . -name '*.jpg' | stint run -j4 convert {} {.}.png
  stint run --joblog log --resume ./process {} ::: *.csv
  stint serve & stint wait $(stint submit ./import.sh today.csv)`

// Main runs the program and returns its exit status. If a signal ended the run, Main does
// not return: the process ends by the same signal, so that the shell sees it.
func Main(args []string, stdin, stdout, stderr *os.File) int {
	isolate.Main() // does not return in watcher processes
	s := &streams{in: stdin, out: stdout, err: stderr}
	root := newRoot(s, args)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err == nil {
		err = s.unwritten
	}
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case s.unwritten != nil && errors.Is(err, syscall.EPIPE): // in a command for which SIGPIPE is an error
		return proc.ExitSignal + int(syscall.SIGPIPE)
	case errors.As(err, &exit):
		if exit.err != nil {
			_, _ = fmt.Fprintf(stderr, "stint: %s\n", plainText(exit.err))
		}
		return exit.status
	}
	_, _ = fmt.Fprintf(stderr, "stint: %s\n", plainText(err))
	return exitOwn
}

// plainText returns the text of an error without prefixes that name the Go package and
// the kind of the error, as in "queue: invalid: ".
func plainText(err error) string {
	text := err.Error()
	for _, kind := range []struct {
		err  error
		text string
	}{
		{queue.ErrInvalid, ""},
		{queue.ErrUnavailable, ""},
		{queue.ErrNotFound, "not found"},
		{queue.ErrFull, "the queue is full"},
		{queue.ErrTooLarge, "too large"},
	} {
		if !errors.Is(err, kind.err) {
			continue
		}
		if kind.text == "" {
			text = strings.ReplaceAll(text, kind.err.Error()+": ", "")
			continue
		}
		text = strings.ReplaceAll(text, kind.err.Error(), kind.text)
	}
	return text
}

// streams are the standard streams of the process.
type streams struct {
	in, out, err *os.File
	unwritten    error // why the first text for out could not be written; Main returns it
}

// Write writes to standard output. Main returns the first error, so that commands may ignore it.
func (s *streams) Write(b []byte) (int, error) {
	n, err := s.out.Write(b)
	s.unwritten = cmp.Or(s.unwritten, err)
	return n, err
}

// printf writes to standard output.
func (s *streams) printf(format string, args ...any) { printTo(s, format, args...) }

// constructors returns the constructor of each command, by the name of the command.
func constructors() map[string]func(*streams) *cobra.Command {
	all := map[string]func(*streams) *cobra.Command{
		"run": newRun, "sem": newSem, "shm": newShm,
		"serve": newServe, "submit": newSubmit, "show": newShow, "why": newWhy, "wait": newWait,
		"logs": newLogs, "dead": newDead, "schedule": newSchedule, "stats": newStats, "limit": newLimit,
		"jobs": newJobs, "nodes": newNodes, "store": newStore, "edit": newEdit,
		"upload": newUpload, "transfers": newTransfers, "bench": newBench, "version": newVersion,
		"ls": func(s *streams) *cobra.Command { return newLs(s) },
	}
	for _, o := range ordersTable {
		all[o.name] = func(s *streams) *cobra.Command { return newOrder(s, o) }
	}
	return all
}

// newRoot returns the tree of commands. If the first argument is the name of a command, the tree has
// only that command: defining the flags of all commands takes a quarter of the time of a start.
func newRoot(s *streams, args []string) *cobra.Command {
	root := &cobra.Command{
		Use: "stint", Short: "Run many commands, a limited number at a time", Long: longHelp, Example: rootExamples,
		Args: aCommand, RunE: help, DisableFlagsInUseLine: true, SuggestionsMinimumDistance: 2,
		SilenceErrors: true, SilenceUsage: true, PersistentPreRunE: refuseEmpty,
	}
	root.SetIn(s.in)
	root.SetOut(s)
	root.SetErr(s.err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if flag, ok := errors.AsType[*pflag.NotExistError](err); ok && flag.GetSpecifiedName() == "dir" &&
			cmd.Flags().Lookup("server") != nil {
			return fmt.Errorf("%w: --server names the directory of a server; see %s --help", plainFlagError(err),
				cmd.CommandPath())
		}
		return fmt.Errorf("%w; see %s --help", plainFlagError(err), cmd.CommandPath())
	})
	all := constructors()
	if len(args) > 0 && all[args[0]] != nil {
		root.CompletionOptions.DisableDefaultCmd = true
		root.AddCommand(all[args[0]](s))
		return root
	}
	for _, construct := range all { // cobra sorts them
		root.AddCommand(construct(s))
	}
	// The commands that cobra adds do not fail for arguments that they do not know.
	root.InitDefaultHelpCmd()
	helper := added(root, "help")
	helper.Run, helper.RunE = nil, helpOf
	root.InitDefaultCompletionCmd()
	completion := added(root, "completion")
	completion.Args, completion.RunE = aCommand, help
	return root
}

// added returns a command that cobra has just added.
func added(root *cobra.Command, name string) *cobra.Command {
	cmd, _, err := root.Find([]string{name})
	if err != nil {
		panic(err)
	}
	return cmd
}

// plainFlagError says in plain words that a value is not a number, or is too large.
func plainFlagError(err error) error {
	var wrong *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &wrong) || !errors.As(err, &number) || number.Func == "ParseBool" {
		return err
	}
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("--%s %q: the number is too large", wrong.GetFlag().Name, wrong.GetValue())
	}
	return fmt.Errorf("--%s %q: give a number, as in 4", wrong.GetFlag().Name, wrong.GetValue())
}

// help is the run function of commands that only have subcommands.
func help(cmd *cobra.Command, _ []string) error { return cmd.Help() }

// helpOf is the run function of stint help.
func helpOf(cmd *cobra.Command, args []string) error {
	named, rest, err := cmd.Root().Find(args)
	if err = cmp.Or(err, aCommand(named, rest)); err != nil {
		return err
	}
	named.InitDefaultHelpFlag()
	return named.Help()
}

// printTo writes to standard error, where an error could not be reported anywhere, or to a
// writer that keeps its error.
func printTo(w io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(w, format, args...) }
