package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/gate"
	"github.com/stintgo/stint/cmd/stint/internal/halt"
	"github.com/stintgo/stint/cmd/stint/internal/input"
	"github.com/stintgo/stint/cmd/stint/internal/jobcount"
	"github.com/stintgo/stint/cmd/stint/internal/joblog"
	"github.com/stintgo/stint/cmd/stint/internal/output"
	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/region"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/cmd/stint/internal/template"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/retry"
)

// config turns flags into a run. It reports every problem that it finds, not only the
// first.
func (f *runFlags) config(args []string, s *streams) (*runner, error) {
	r := &runner{streams: s}
	r.cfg.Meter = &progress.Meter{}
	r.cfg.Say = r.say
	words, lists, err := input.SplitArgs(args)
	if err == nil { // otherwise the lists are incomplete, and the inputs do not come from standard input
		err = f.source(r, lists)
	}
	err = errors.Join(err, f.check(len(words)), f.command(r, words), f.limits(r), f.failures(r), f.output(r))
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// check reports flags that exclude each other.
func (f *runFlags) check(words int) error {
	var problems []error
	add := func(wrong bool, problem string) {
		if wrong {
			problems = append(problems, errors.New(problem))
		}
	}
	resumes := f.resume || f.resumeFailed
	live := f.lines || f.ungroup
	add(f.group && live || f.lines && f.ungroup, "--group, --line-buffer and --ungroup exclude each other")
	add(f.keepOrder && live, "--keep-order holds output back until its turn, --line-buffer and --ungroup don't: use one")
	add(f.tag && f.ungroup, "--tag cannot change what --ungroup lets jobs write by themselves")
	add(f.stdoutAnywhere && f.stdout == "", "--stdout-anywhere changes what --stdout FILE allows: give that, too")
	add(resumes && f.joblog == "", "--resume needs --joblog FILE, which says what is done")
	add(f.given("resume-by") && !resumes, "--resume-by says how --resume knows jobs again: give --resume, too")
	add(f.resumeBy != "seq" && f.resumeBy != "command", `--resume-by must be "seq" or "command"`)
	add(f.jobs != "" && f.maxProcs != "", "-P is another name of -j: use one of them")
	add(f.given("key-jobs") && f.keyJobs == 0, "--key-jobs 0 would start nothing: give 1 or more, or leave it out")
	add(f.given("load") && !(f.load > 0), "--load must be above 0") // NaN is not above it either
	add(f.given("retry-delay") && !f.given("retries"), "--retry-delay is the time before a retry: give --retries, too")
	add(f.asBar && f.given("progress"), "--bar is another name of --progress bar: use one of them")
	add(f.keyJobs > 0 && f.key == "", "--key-jobs needs --key, which gives each job its key")
	add(words == 0 && f.max != 1, "-n needs a command: without one, each input is a command")
	add(words == 0 && f.given("shell") && !f.shell,
		"without a command each input is one for the shell: leave out --shell=false")
	add(f.null && f.delimiter != `\n`, "-0 and -d both say what ends an input: use one")
	add(f.lookahead < 1, fmt.Sprintf("--lookahead is %d, must be at least 1", f.lookahead))
	add(f.max < 0, "--max-args is negative: give 0 or more")
	add(f.keyJobs < 0, "--key-jobs is negative: give 1 or more, or leave it out")
	return errors.Join(append(problems, notNegative("retry-delay", f.retryDelay), notNegative("delay", f.delay),
		notNegative("timeout", f.timeout), notNegative("kill-after", f.killAfter))...)
}

// command sets the command to run, and the key and tier of jobs.
func (f *runFlags) command(r *runner, words []string) error {
	shell := run.ShellAuto
	if f.given("shell") {
		shell = run.ShellNever
		if f.shell {
			shell = run.ShellAlways
		}
	}
	var err error
	r.cfg.Command, err = run.NewCommand(words, run.CommandConfig{
		Shell: shell, Name: f.name, NoInput: f.max == 0, Several: r.cfg.Source.Several(),
	})
	r.cfg.Priority = template.Parse(f.priority, f.name)
	r.cfg.Key = template.Parse(f.key, f.name)
	r.cfg.Trace = f.trace
	return err
}

// limits sets the limits of the run.
func (f *runFlags) limits(r *runner) (err error) {
	var errs [4]error
	machine := jobcount.Machine{CPUs: runtime.GOMAXPROCS(0), Most: mostJobs(f.jobs+f.maxProcs, proc.Room)}
	r.cfg.Jobs, errs[0] = f.jobCount(r, machine)
	r.cfg.MostJobs = machine.Most
	r.cfg.KeyJobs, r.cfg.Lookahead, r.cfg.Load, r.cfg.Delay = f.keyJobs, f.lookahead, f.load, f.delay
	r.cfg.Rate, errs[1] = f.startRate()
	if f.memfree != "" {
		var least int64
		if least, errs[2] = gate.ParseSize(f.memfree); errs[2] != nil {
			errs[2] = fmt.Errorf("--memfree: %w", errs[2])
		}
		r.cfg.Gates = append(r.cfg.Gates, gate.Memory(least, gate.ReadMemory))
	}
	if f.shared != "" {
		r.shared, errs[3] = region.Parse(f.shared)
	}
	return errors.Join(errs[:]...)
}

// startRate returns how many jobs may start per second; 0 means no limit.
func (f *runFlags) startRate() (float64, error) {
	if f.rate == "" {
		return 0, nil
	}
	if startsNothing(f.rate) {
		return 0, fmt.Errorf("--rate %s would start nothing: give more, as in 5/s, or leave it out for no limit", f.rate)
	}
	rate, err := stint.ParseRate(f.rate)
	if err != nil {
		return 0, fmt.Errorf("--rate: %w", err)
	}
	return rate, nil
}

func (f *runFlags) jobCount(r *runner, machine jobcount.Machine) (int, error) {
	text := f.jobs + f.maxProcs
	if text == "" {
		return min(machine.CPUs, machine.Most), nil
	}
	path, ok := strings.CutPrefix(text, "@")
	if !ok {
		return jobcount.Parse(text, machine)
	}
	r.cfg.JobsFile = &run.JobsFile{Path: path, Machine: machine}
	n, err := r.cfg.JobsFile.Read()
	if err != nil {
		return 0, fmt.Errorf("-j %s: %w; the file is to say how many jobs may run", text, err)
	}
	return n, nil
}

// filesPerJob is how many descriptors a job needs at most: two outputs, each in memory
// and on disk, and an input. spareFiles is how many stint itself needs.
const (
	filesPerJob = 5
	spareFiles  = 64
	// mostThreads is below the 10,000 threads that the Go runtime allows: one thread
	// waits for each running job. If the system has no room for a thread, the runtime ends stint.
	mostThreads = 8000
	// fewJobs is a number of jobs for which the room for processes is not determined, which takes
	// milliseconds: mostly it is there.
	fewJobs = 16
)

// mostJobs returns how many jobs the system allows at once. text is the number that is asked for, or
// names a file that has it, and room returns how many processes and threads may be started.
func mostJobs(text string, room func() int) int {
	most := filesJobs()
	n, err := jobcount.Parse(text, jobcount.Machine{CPUs: runtime.GOMAXPROCS(0), Most: most})
	if text == "" || err == nil && n <= fewJobs {
		return most
	}
	return min(most, roomJobs(room()))
}

// filesJobs returns how many jobs the limits on open files and threads of this process allow.
func filesJobs() int {
	most := int64(mostThreads)
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		most = min(most, int64((max(files.Cur, spareFiles)-spareFiles)/filesPerJob))
	}
	return int(max(most, 1))
}

// roomJobs returns how many jobs fit into room for processes and threads: each is one of both.
func roomJobs(room int) int { return max(room/2, 1) }

// failures sets what happens to jobs that fail or take too long.
func (f *runFlags) failures(r *runner) error {
	var errs [2]error
	r.cfg.Timeout, r.cfg.KillAfter = f.timeout, f.killAfter
	// Jobs that fail together, because a server is down, should not all retry together,
	// so the delays are random.
	r.cfg.Retry = retry.Policy{Base: f.retryDelay, Jitter: retry.Decorrelated}
	if f.retryDelay == 0 { // which the policy takes for its default
		r.cfg.Retry.Base, r.cfg.Retry.Max = 1, 1
	}
	r.cfg.Retry.Attempts, errs[0] = attempts(f.retries)
	r.cfg.Halt, errs[1] = halt.Parse(f.halt)
	return errors.Join(errs[:]...)
}

// logConfig returns how to open the job log.
func (f *runFlags) logConfig() joblog.Config {
	cfg := joblog.Config{Resume: f.resume || f.resumeFailed, Failed: f.resumeFailed}
	if f.resumeBy == "command" {
		cfg.Match = joblog.MatchCommand
	}
	return cfg
}

// output sets where output goes.
func (f *runFlags) output(r *runner) error {
	c := &r.cfg
	switch {
	case f.lines:
		c.Grouping = run.Lines
	case f.ungroup:
		c.Grouping = run.Ungroup
	}
	c.KeepOrder, c.Tag = f.keepOrder, f.tag
	c.Spool = output.NewSpool(f.tmpdir)
	c.Stdout = run.Redirection{
		Set: f.stdout != "", Path: template.Parse(f.stdout, f.name), Anywhere: f.stdoutAnywhere,
	}
	c.Stdin = run.Redirection{Set: f.stdin != "", Path: template.Parse(f.stdin, f.name)}
	if f.stdin == "-" {
		if r.inputs {
			return errors.New("--stdin - : standard input gives the inputs already; use -a FILE or ::: for those")
		}
		c.Stdin = run.Redirection{}
		c.Inherit = r.streams.in
	}
	return errors.Join(f.checkTmpdir(c.Spool), f.checkStdout(r), f.showProgress(r))
}

// checkTmpdir checks the directory for large outputs now, and not when the first one is to
// be kept there, which would end the run in the middle.
func (f *runFlags) checkTmpdir(spool *output.Spool) error {
	if f.tmpdir == "" {
		return nil // the default may be unusable, and most runs do not need it
	}
	info, err := os.Stat(f.tmpdir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", f.tmpdir)
	}
	if err != nil {
		return fmt.Errorf("--tmpdir: %w; name a directory in which this user may write", err)
	}
	return spool.Check()
}

// checkStdout refuses one regular file for the outputs of several jobs, each of which
// would replace it. Devices and pipes can take all outputs.
func (f *runFlags) checkStdout(r *runner) error {
	src := &r.cfg.Source
	if !r.cfg.Stdout.Set || r.cfg.Stdout.Path.Differs() || src.Lists != nil && src.Total() <= 1 {
		return nil
	}
	if info, err := os.Stat(f.stdout); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	return fmt.Errorf("--stdout %s is one file for all jobs, each of which would replace it: put {#} or a part of the "+
		"input into the name, as in %s.{#}, or write what they all print to one file with > %[1]s behind the command",
		f.stdout, f.stdout)
}

// showProgress sets how progress is shown.
func (f *runFlags) showProgress(r *runner) error {
	if f.asBar {
		f.progress = string(progress.ModeBar)
	}
	mode, err := progress.ParseMode(f.progress)
	if err != nil {
		return err
	}
	onTerminal, outToo := isTerminal(r.streams.err), isTerminal(r.streams.out)
	switch {
	case mode == progress.ModeAuto && !onTerminal:
		mode = progress.ModePlain
	case mode == progress.ModeAuto && f.ungroup && outToo:
		mode = progress.ModeNone // jobs would write over the bar
	case mode == progress.ModeAuto:
		mode = progress.ModeBar
	}
	r.reporter = progress.Reporter{Mode: mode, Meter: r.cfg.Meter, W: r.streams.err}
	var screen output.Screen
	if mode == progress.ModeBar {
		r.reporter.Bar = progress.NewBar(r.streams.err, func() int { return width(r.streams.err) }, os.Getenv)
		screen = r.reporter.Bar
	}
	r.cfg.Sink = output.NewSink(r.streams.out, r.streams.err, screen, [2]bool{outToo, true})
	return nil
}
