package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/input"
	"github.com/stintgo/stint/cmd/stint/internal/joblog"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/region"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/shm"
)

const runLong = `Run a command for each input, several at a time (-j).

Inputs are the lines of standard input or of a file (-a), or lists after the command:
::: words, or :::: files. Several lists give every combination; :::+ and ::::+ link a
list to the list before it, the first input with the first. In the command:

  {}    the input               {1} {2}  its fields (see --colsep)
  {.}   without extension       {#}      the job's number
  {/}   without directory       {%}      the slot that it runs on
  {//}  the directory           {1.} {2/} {1//} {2/.} work too

Without a placeholder the input follows the command. A command of one word with
shell syntax in it is run by sh -c, with inputs quoted: write {} without quotes
around it; inside quotes it is refused. For longer texts: 'f={}; echo "($f)"'.
Without a command each input is a shell command.

Exit status: 0 if all jobs succeeded, the number of failed jobs up to 100, 101
for more; 125 for errors of stint itself, 126 or 127 if the command cannot be run
or is not found; 128 plus the signal's number if a signal ended the run.`

const runExamples = `  # compress, four at a time; every .gz that exists is complete
  find . -name '*.log' | stint run -j4 --stdout {}.gz gzip -c {}

  # continue after a crash where it stopped
  stint run --joblog done.log --resume ./convert {} {.}.png ::: *.jpg

  # through the shell, with a limit per host and overall
  stint run -j20 --key {1} --key-jobs 2 --rate 50/s -C , 'curl -sf https://{1}/{2} > {2}' < urls.csv

  # urgent ones first, each at most a minute, up to three attempts
  stint run --priority {1} --timeout 1m --retries 2 -C '\t' ./task {2} < tasks.tsv

  # every combination
  stint run echo {1}-{2} ::: a b ::: 1 2 3

  # the first line of one file with the first of the other, and so on
  stint run mv {1} {2} :::: from.txt ::::+ to.txt`

func newRun(s *streams) *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:     "run [flags] [--] [command [args]] [::: inputs | :::: files]...",
		Short:   "Run a command for each input, in parallel",
		Long:    runLong,
		Example: runExamples,
		Args:    cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			flags.given = cmd.Flags().Changed
			if words, _, err := input.SplitArgs(args); err == nil {
				warnOwnFlags(s.err, cmd, words)
			}
			return runRun(&flags, args, s)
		},
	}
	// Flags after the command's name belong to the command.
	cmd.Flags().SetInterspersed(false)
	flags.register(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("shared", completeRegions)
	return cmd
}

// runRun is stint run.
func runRun(flags *runFlags, args []string, s *streams) error {
	r, err := flags.config(args, s)
	if err != nil {
		return err
	}
	defer r.close()
	if flags.dryRun {
		return r.dryRun(flags)
	}
	if err := r.cfg.Command.Check(); err != nil {
		return &exitError{proc.LookStatus(err), err}
	}
	if err := r.share(); err != nil {
		return err
	}
	if err := r.openLog(flags); err != nil {
		return err
	}
	run.SpareProcessor()
	outcome := r.do()
	if err := r.cfg.Log.Close(); err != nil && outcome.Err == nil {
		outcome.Err = err
	}
	r.summarise(&outcome, flags.quiet)
	return r.exit(&outcome)
}

// runner is a configured run with its resources.
type runner struct {
	cfg      run.Config
	reporter progress.Reporter
	streams  *streams
	input    *os.File    // closed at the end, or nil
	inputs   bool        // inputs come from standard input
	shared   region.Spec // shared slots; no name means none
	region   *shm.Region // the region of the shared slots, or nil
}

func (r *runner) close() {
	if r.input != nil {
		_ = r.input.Close()
	}
	if r.cfg.Held != nil {
		_ = r.cfg.Held.Close()
	}
	if r.region != nil {
		_ = r.region.Close() // no job runs any more
	}
}

// share opens the slots that the run shares with other processes, if any. It waits until
// the region has room for this process before it catches signals, so signals end the
// wait.
func (r *runner) share() (err error) {
	if r.shared.Name == "" {
		return nil
	}
	waits := func() {
		r.say(fmt.Sprintf("waiting for a process to end: %d processes share %s, which is the maximum",
			shm.ProcessesMax, r.shared.Name))
	}
	if r.region, err = r.shared.Open(context.Background(), waits); err != nil {
		return fmt.Errorf("--shared: %w", err)
	}
	r.cfg.Slots = r.region.Slots(0)
	if r.cfg.Held, err = r.region.File(); err != nil {
		return fmt.Errorf("--shared: %w", err)
	}
	return nil
}

// openLog opens the job log, if there is one.
func (r *runner) openLog(flags *runFlags) error {
	if flags.joblog == "" {
		return nil
	}
	cfg := flags.logConfig()
	cfg.Before = r.cfg.Sink.Sync
	var err error
	r.cfg.Log, err = joblog.Open(flags.joblog, cfg)
	return err
}

// dryRun prints the commands of a run.
func (r *runner) dryRun(flags *runFlags) error {
	var err error
	if flags.joblog != "" {
		if r.cfg.Log, err = joblog.Peek(flags.joblog, flags.logConfig()); err != nil {
			return err
		}
	}
	bad, err := run.DryRun(&r.cfg, r.streams.out)
	if err != nil {
		return err
	}
	if bad > 0 {
		return &exitError{status: min(bad, 101)}
	}
	return nil
}

// do executes the run, with signals and progress.
func (r *runner) do() run.Outcome {
	signals := make(chan os.Signal, 16)
	for _, sig := range run.Signals() {
		// Signals ignored at the start, as by nohup, stay ignored.
		if !signal.Ignored(sig) || sig == syscall.SIGPIPE || sig == syscall.SIGXFSZ {
			signal.Notify(signals, sig)
		}
	}
	r.cfg.Signal = signals
	r.cfg.Die = func(sig syscall.Signal) { _ = dieBy(sig) }
	ctx, cancel := context.WithCancel(context.Background())
	var reporting sync.WaitGroup
	reporting.Go(func() { r.reporter.Run(ctx) })
	outcome := run.Do(&r.cfg)
	// What is left to write may wait for a reader for ever: these signals end that.
	signal.Reset(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	cancel()
	reporting.Wait()
	return outcome
}

// say prints a line to standard error, above the bar.
func (r *runner) say(msg string) {
	r.reporter.Bar.Hide()
	defer r.reporter.Bar.Show()
	printTo(r.streams.err, "stint: %s\n", msg)
}

// summarise prints what has not been printed yet.
func (r *runner) summarise(o *run.Outcome, quiet bool) {
	s := r.cfg.Meter.Snapshot()
	if o.Failed > 0 && !quiet {
		r.say(fmt.Sprintf("%d of %d jobs failed; first: %s", o.Failed, s.Succeeded+s.Failed, o.First))
	}
	if o.Signal != 0 {
		if o.Err != nil && !errors.Is(o.Err, syscall.EPIPE) {
			r.say(o.Err.Error()) // the signal decides the exit status
		}
		r.say(fmt.Sprintf("stopped by the signal %v: %s done, %d read and not done%s",
			o.Signal, view.Count(s.Done(), "job"), o.Left, r.hint()))
	} else if o.Err == nil && o.Left > 0 && !quiet {
		r.say(fmt.Sprintf("stopped by --halt: %s done, %d read and not done%s",
			view.Count(s.Done(), "job"), o.Left, r.hint()))
	}
}

func (r *runner) hint() string {
	if r.cfg.Log == nil {
		return ""
	}
	return "; --resume continues from here"
}

// exit turns an outcome into an exit status.
func (r *runner) exit(o *run.Outcome) error {
	switch {
	case o.Signal != 0:
		return dieBy(o.Signal)
	case errors.Is(o.Err, syscall.EPIPE):
		// Like a program before head in a pipe: its output has no reader.
		return &exitError{status: proc.ExitSignal + int(syscall.SIGPIPE)}
	case o.Err != nil:
		return o.Err
	case o.Halted != nil && *o.Halted == (proc.Status{}):
		return nil // enough jobs have succeeded
	case o.Halted != nil && o.Halted.Exit == 0:
		return &exitError{status: proc.ExitSignal + int(o.Halted.Signal)}
	case o.Halted != nil: // of a job that ran out of time it is 124, whatever signal ended it
		return &exitError{status: o.Halted.Exit}
	case o.Failed > 0:
		return &exitError{status: min(o.Failed, 101)}
	}
	return nil
}

// dieBy ends the process by a signal, as if it had no handler. A shell that runs a loop
// needs that: it stops if a child was interrupted, and continues after one that exits
// with 130.
func dieBy(sig syscall.Signal) error {
	signal.Reset(sig)
	if err := syscall.Kill(os.Getpid(), sig); err == nil {
		select {} // the signal is pending
	}
	return &exitError{status: proc.ExitSignal + int(sig)}
}
