// Package run implements stint run: it runs a command for each of many inputs, several at
// once. Package stint decides which job starts when; this package makes jobs of inputs
// and processes of jobs, and reports their results.
package run

// The run:
//
//   - run.go: Config and Do, from the first input to the outcome
//   - dryrun.go: DryRun, which only writes the commands
//   - signals.go: what signals to stint do
//   - stopper.go: why a run stops before its inputs end
//   - verdict.go: counts finished jobs, applies the halt rule, and gives the exit status
//
// Inputs and commands:
//
//   - source.go: Source: the inputs
//   - feed.go: makes a job of each input and submits it
//   - command.go: Command: makes arguments of an input
//   - nested.go: refuses inputs that a shell within the command would execute
//   - refusals.go: reports inputs that cannot be made into a command
//   - brief.go: the beginning of a text, for messages
//
// When jobs start:
//
//   - pool.go: submits jobs to the scheduler, and makes an attempt on each slot
//   - shared.go: slots that are shared with other processes
//   - limit.go: the number of jobs that may run at once
//   - jobsfile.go: changes that number when a file changes
//   - pacer.go: the rate, the delay and the load average
//   - backoff.go: jobs that wait for their next attempt
//
// Jobs:
//
//   - job.go: job, from its input to its last attempt
//   - attempt.go: one attempt: its files, its process and its result
//   - settle.go: decides after an attempt whether the job is done
//   - launcher.go: opens the files of attempts and starts their processes
//   - slots.go: the number of a running job among those that run
//   - timeout.go: ends an attempt at its time limit
//   - registry.go: the running processes, which get signals
//   - stopnote.go: the message about a job that was stopped because it uses the terminal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/gate"
	"github.com/stintgo/stint/cmd/stint/internal/halt"
	"github.com/stintgo/stint/cmd/stint/internal/joblog"
	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/template"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/internal/watcher"
	"github.com/stintgo/stint/retry"
)

// Grouping says how the output of jobs is written.
type Grouping uint8

// The groupings.
const (
	Group   Grouping = iota // written in one piece when the job ends
	Lines                   // written line by line
	Ungroup                 // by the job itself
)

// Config configures a run. All fields but Command, Source, Jobs and Sink may have their
// zero value.
type Config struct {
	Command  Command
	Source   Source
	Priority template.Template // of a job: the name of a tier, or empty
	Key      template.Template // that limits and fairness apply to, or empty

	Jobs      int           // how many run at once
	MostJobs  int           // the upper limit for Jobs during the run; 0: Jobs
	JobsFile  *JobsFile     // changes Jobs during the run, or nil
	Slots     stint.Slots   // shared with other processes, or nil: each job needs one of these too
	Held      *os.File      // stays open until no job runs, even if stint is killed; or nil
	KeyJobs   int           // how many jobs of one key run at once; 0 means no limit
	Lookahead int           // how many inputs are read ahead
	Rate      float64       // starts per second; 0 means no limit
	Delay     time.Duration // between two starts at least
	Gates     []gate.Check  // true at each start
	Load      float64       // the load average above which nothing starts; 0 means no limit
	Retry     retry.Policy  // Attempts 1 for none
	Timeout   time.Duration // of an attempt; 0 means no timeout
	KillAfter time.Duration // from the TERM signal to the KILL signal
	Halt      halt.Rule

	Sink      *output.Sink
	Spool     *output.Spool
	Grouping  Grouping
	KeepOrder bool
	Tag       bool
	Stdin     Redirection // of jobs; empty: Inherit, or else the null device
	Inherit   *os.File    // standard input that all jobs share, or nil
	Stdout    Redirection // of jobs; empty: as Grouping says

	Log    *joblog.Log // or nil
	Meter  *progress.Meter
	Trace  bool             // write each command to Say before it starts
	Say    func(msg string) // reports a message of one line to the user
	Signal <-chan os.Signal // signals to this process
	// Die ends this process by a signal, without waiting for anything.
	Die func(syscall.Signal)
}

// Redirection is the name of a file, which may be different for each job.
type Redirection struct {
	Set  bool
	Path template.Template
	// Anywhere: an input may lead outside the directory that Path begins with.
	Anywhere bool
}

// target returns the file that a job writes.
func (r *Redirection) target(job *template.Job) (string, error) {
	if r.Anywhere {
		return r.Path.String(job)
	}
	name, err := r.Path.Path(job)
	if errors.Is(err, template.ErrEscape) {
		return "", fmt.Errorf("%w: {/} is only its last part, and --stdout-anywhere allows every path", err)
	}
	return name, err
}

// Outcome is the result of a run.
type Outcome struct {
	Failed int            // including jobs whose input was invalid
	Signal syscall.Signal // that ended the run, or 0
	// Halted is the exit status if a halt rule decides it: success if enough jobs have
	// succeeded, and that of the failed job if the rule counts one failure; otherwise nil.
	Halted *proc.Status
	// Err is the error of the run itself that ended it: the output or the job log cannot
	// be written, or the input cannot be read.
	Err error
	// First describes the first job that failed.
	First string
	// Left is the number of jobs that were read but neither succeeded nor failed.
	Left int64
}

// Run is a run in progress.
type Run struct {
	cfg      *Config
	sched    stint.Scheduler
	shared   *shared // nil without shared slots
	launcher launcher
	printer  *output.Printer

	limit    limit
	pacer    pacer
	slots    slots
	registry registry
	backoff  backoff
	stop     *stopper
	signals  signalHandler

	refusals refusals // owned by the reader
	verdict  verdict
	stopNote stopNote

	jobs sync.WaitGroup // jobs that were read and are not done
}

// Do runs all jobs and returns when no process runs any more. It is called once per
// Config.
func Do(cfg *Config) Outcome {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return Outcome{Err: err}
	}
	defer func() { _ = null.Close() }() // never written to
	// Random: process IDs are reused, and each container has its own.
	name := strconv.FormatUint(rand.Uint64(), 36)
	w := watcher.Start(watcher.Program, name, cfg.Held, func(err error) {
		// The run continues: the watcher matters only if stint is killed.
		cfg.Say(fmt.Sprintf("if stint is killed, the processes of jobs will keep running: %v", err))
	})
	defer w.Stop()
	r := newRun(cfg)
	r.launcher = launcher{
		cfg: cfg, registry: &r.registry, giveUp: r.stop.starting.Done(), env: proc.NewEnv(os.Environ(), name), stdin: null,
		watcher: w, dirs: output.NewDirectories(nil),
	}
	if cfg.Inherit != nil {
		r.launcher.stdin = cfg.Inherit
	}
	return r.run()
}

// newRun returns a run that cannot start processes yet.
func newRun(cfg *Config) *Run {
	r := &Run{
		cfg:      cfg,
		printer:  output.NewPrinter(cfg.Sink, cfg.Spool, cfg.KeepOrder),
		registry: registry{limit: cfg.Timeout, killAfter: cfg.KillAfter},
		stop:     newStopper(),
		refusals: refusals{say: cfg.Say},
		verdict:  verdict{rule: cfg.Halt, meter: cfg.Meter},
		stopNote: stopNote{say: cfg.Say},
	}
	r.sched, r.shared = newScheduler(cfg)
	r.limit = limit{most: max(cfg.MostJobs, cfg.Jobs), resize: r.sched.Resize}
	r.limit.set(cfg.Jobs)
	r.pacer = newPacer(cfg, &r.registry)
	r.signals = signalHandler{cfg: cfg, limit: &r.limit, registry: &r.registry, stop: r.stop}
	return r
}

// SpareProcessor gives the Go scheduler one processor more than the machine has. This
// process mainly waits in system calls; if none of its processors is idle, the Go
// scheduler wakes a thread at each wait to look for work, and there is none. One idle
// processor avoids that: it halves the context switches and saves a tenth of all the work
// of running true(1). SpareProcessor does not override GOMAXPROCS in the environment.
func SpareProcessor() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
}

func (r *Run) run() Outcome {
	handling, handled := context.WithCancel(context.Background())
	var handler sync.WaitGroup
	handler.Go(func() { r.signals.run(handling) })
	ctx, cancel := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { r.cfg.JobsFile.watch(ctx, r.limit.set, r.cfg.Say) })
	background.Go(func() { r.enforce(ctx) })
	background.Go(func() { r.watchSink(ctx) })
	background.Go(func() { r.stop.fail(r.cfg.Spool.Run(ctx)) })
	readErr := r.feed()
	r.jobs.Wait()
	cancel()
	background.Wait()
	r.stop.fail(readErr)
	r.stop.fail(r.printer.Flush())
	handled()
	handler.Wait()
	return r.outcome()
}

// enforce carries out what the stopper has decided: first for the jobs that wait for
// another attempt or for shared slots, then for those that run. A signal from a user is
// passed on, without a time limit for the jobs; a second signal kills them. A halt or a
// failure kills them after the grace period.
func (r *Run) enforce(ctx context.Context) {
	select {
	case <-r.stop.starting.Done():
	case <-ctx.Done():
		return
	}
	r.backoff.close(func(*job) { r.jobs.Done() })
	r.shared.stop()
	select {
	case <-r.stop.ending.Done():
	case <-ctx.Done():
		return
	}
	r.registry.end(r.stop.jobSignal())
	if sig, _ := r.stop.why(); sig != 0 {
		return
	}
	select {
	case <-time.After(r.cfg.KillAfter):
		r.registry.end(syscall.SIGKILL)
	case <-ctx.Done():
	}
}

// watchSink ends the run when output cannot be written, even if no job ends.
func (r *Run) watchSink(ctx context.Context) {
	select {
	case <-r.cfg.Sink.Failed():
		r.stop.fail(r.cfg.Sink.Err())
	case <-ctx.Done():
	}
}

// outcome returns the result of the run.
func (r *Run) outcome() Outcome {
	s := r.cfg.Meter.Snapshot()
	o := Outcome{Failed: int(s.Failed), Left: s.Read - s.Done()}
	o.Signal, o.Err = r.stop.why()
	o.First, o.Halted = r.verdict.get()
	return o
}
