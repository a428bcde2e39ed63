// Package run implements stint run: it runs a command for each of many inputs, several at
// once. Package stint decides which job starts when; this package makes jobs of inputs
// and processes of jobs, and reports their results.
package run

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/stintgo/stint/cmd/stint/internal/input"
	"github.com/stintgo/stint/cmd/stint/internal/joblog"
	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/template"
	"github.com/stintgo/stint/internal/clock"
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
	cfg     *Config
	sched   stint.Scheduler
	shared  *shared        // nil without shared slots
	limiter *stint.Limiter // nil without a rate
	printer *output.Printer
	env     proc.Env
	paths   paths
	stdin   *os.File // of jobs without an input of their own
	dirs    *output.Directories
	watcher *watcher.Watcher

	gates    *gate.Gates // nil if there are none
	slots    slots
	registry registry
	backoff  backoff
	limit    limit
	stop     *stopper

	refusals refusals // owned by the reader

	jobs sync.WaitGroup // jobs that were read and are not done

	stopNoted sync.Once      // reports the first job that the terminal has stopped
	saying    sync.WaitGroup // a message that may wait for a reader of standard error

	mu     sync.Mutex
	first  string       // guarded by mu
	halted *proc.Status // guarded by mu
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
	r := &Run{
		cfg:     cfg,
		printer: output.NewPrinter(cfg.Sink, cfg.Spool, cfg.KeepOrder),
		env:     proc.NewEnv(os.Environ(), name),
		dirs:    output.NewDirectories(nil),
		stdin:   null,
		stop:    newStopper(),
		limit:   limit{most: max(cfg.MostJobs, cfg.Jobs)},

		registry: registry{limit: cfg.Timeout, killAfter: cfg.KillAfter},
		refusals: refusals{say: cfg.Say},
	}
	r.sched, r.shared = newScheduler(cfg)
	if cfg.Inherit != nil {
		r.stdin = cfg.Inherit
	}
	r.watcher = watcher.Start(watcher.Program, name, cfg.Held, r.unwatched)
	defer r.watcher.Stop()
	r.limit.set(cfg.Jobs, r.sched.Resize)
	if cfg.Rate > 0 {
		limiter := stint.NewLimiter(cfg.Rate, stint.LimiterConfig{Capacity: burst(cfg.Rate)})
		r.limiter = &limiter
	}
	r.gates = r.newGates()
	return r.run()
}

// unwatched reports that the watcher could not be started. The run continues: the watcher
// matters only if stint is killed.
func (r *Run) unwatched(err error) {
	r.cfg.Say(fmt.Sprintf("if stint is killed, the processes of jobs will keep running: %v", err))
}

// burst returns how many jobs may start at once under a rate: about 10 ms worth, so that
// starts are spread out. A burst of 1 s worth, usual for limiters, would allow twice the
// rate in the first second.
func burst(rate float64) int64 { return max(int64(rate/100), 1) }

// newGates returns the gates of the run, or nil.
func (r *Run) newGates() *gate.Gates {
	checks := r.cfg.Gates
	if r.cfg.Load > 0 {
		checks = append(checks, gate.Load(r.cfg.Load, gate.ReadLoad, r.young))
	}
	if r.cfg.Delay == 0 && len(checks) == 0 {
		return nil
	}
	return gate.New(r.cfg.Delay, checks...)
}

// felt is the time after which the load average includes a process well enough.
const felt = 5 * time.Second

func (r *Run) young() int { return r.registry.young(clock.Now(), felt) }

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
	handler.Go(func() { r.signals(handling) })
	ctx, cancel := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { r.watchJobsFile(ctx) })
	background.Go(func() { r.enforce(ctx) })
	background.Go(func() { r.watchSink(ctx) })
	background.Go(func() { r.stop.fail(r.cfg.Spool.Run(ctx)) })
	readErr := r.feed()
	r.jobs.Wait()
	cancel()
	background.Wait()
	r.stop.fail(readErr)
	r.stop.fail(r.printer.Flush())
	r.saying.Wait()
	handled()
	handler.Wait()
	return r.outcome()
}

// watchSink ends the run when output cannot be written, even if no job ends.
func (r *Run) watchSink(ctx context.Context) {
	select {
	case <-r.cfg.Sink.Failed():
		r.stop.fail(r.cfg.Sink.Err())
	case <-ctx.Done():
	}
}

// feed reads inputs and submits a job for each, until there are no more or the run stops.
// It returns the error of the input.
func (r *Run) feed() error {
	r.cfg.Meter.SetTotal(r.cfg.Source.Total())
	var reader io.Reader
	if file := r.cfg.Source.File; file != nil {
		// The wait for input also ends after a halt.
		in, done, err := input.Interruptible(r.stop.starting, file)
		if err != nil {
			return err
		}
		defer done()
		reader = in
	}
	defer r.refusals.sum()
	seq := 0
	for in, err := range r.cfg.Source.all(reader, r.cfg.Meter.SetGuess) {
		if r.stop.starting.Err() != nil {
			return nil
		}
		if err != nil {
			// What was read before the error is valid, and runs.
			return fmt.Errorf("read inputs: %w", err)
		}
		seq++
		r.cfg.Meter.Read()
		r.take(seq, in)
	}
	r.cfg.Meter.EndOfInput()
	if n := r.cfg.Log.Unlisted(); n > 0 && r.stop.starting.Err() == nil {
		r.cfg.Say(fmt.Sprintf("the inputs make %d jobs, and the job log has %d that are not among them", seq, n))
	}
	return nil
}

// take makes a job of an input and submits it, unless the job log has it as done or it
// cannot be run.
func (r *Run) take(seq int, in item) {
	j, err := r.makeJob(seq, in)
	if err != nil {
		r.refuse(j, err)
		return
	}
	done, err := r.cfg.Log.Done(seq, j.text)
	switch {
	case errors.Is(err, joblog.ErrChanged):
		r.stop.fail(fmt.Errorf("%w; it is now: %s\n"+
			"Use a new job log, or --resume-by command if only the order of the inputs is another", err, brief(j.text)))
	case done:
		r.cfg.Meter.Skip()
		r.stop.fail(r.printer.Print(output.Result{Seq: seq}))
	default:
		r.submit(j)
	}
}

// refuse counts an invalid input as a failed job. It gets no line in the job log, so that
// a resumed run reads it again.
func (r *Run) refuse(j *job, err error) {
	r.refusals.note(j, err)
	r.stop.fail(r.printer.Print(output.Result{Seq: j.Seq}))
	r.count(j, &proc.Status{Exit: proc.ExitCannotRun}, err.Error())
}

// outcome returns the result of the run.
func (r *Run) outcome() Outcome {
	s := r.cfg.Meter.Snapshot()
	sig, err := r.stop.why()
	r.mu.Lock()
	defer r.mu.Unlock()
	return Outcome{
		Failed: int(s.Failed), Signal: sig, Err: err, Halted: r.halted, First: r.first, Left: s.Read - s.Done(),
	}
}
