package cli

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/retry"
)

// runFlags are the flags of stint run, unparsed.
type runFlags struct {
	file                  string
	null                  bool
	delimiter, colsep     string
	max                   int
	name                  string
	shell                 bool
	jobs, maxProcs        string
	shared                string
	priority, key         string
	keyJobs, lookahead    int
	rate                  string
	delay                 time.Duration
	load                  float64
	memfree               string
	retries               int
	retryDelay            time.Duration
	timeout, killAfter    time.Duration
	halt                  string
	group, lines, ungroup bool
	keepOrder, tag        bool
	tmpdir, stdin, stdout string
	stdoutAnywhere        bool
	joblog                string
	resume, resumeFailed  bool
	resumeBy              string
	progress              string
	quiet, trace, dryRun  bool
	noRunIfEmpty, asBar   bool
	given                 func(name string) bool // whether a flag was given
}

// Defaults of flags, which docs/run.md also lists.
const (
	defaultLookahead  = 10_000
	defaultKillAfter  = isolate.DefaultGrace
	defaultRetryDelay = retry.DefaultBase
)

// register defines the flags, in the order of the help.
func (f *runFlags) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	f.registerInputs(flags)
	f.registerLimits(flags)
	f.registerFailures(flags)
	f.registerOutput(flags)
}

func (f *runFlags) registerInputs(flags *pflag.FlagSet) {
	flags.StringVarP(&f.file, "input", "a", "", "read inputs from `FILE` instead of standard input")
	flags.BoolVarP(&f.null, "null", "0", false, "inputs end with NUL, as find -print0 writes them")
	flags.StringVarP(&f.delimiter, "delimiter", "d", `\n`, "inputs end with `CHAR` (default: newline)")
	flags.Lookup("delimiter").DefValue = "" // help would print it with two backslashes
	flags.StringVarP(&f.colsep, "colsep", "C", "", "split inputs into {1} {2}… at `SEP`: one character or a regexp")
	flags.IntVarP(&f.max, "max-args", "n", 1, "pass up to `N` inputs to each job; 0: one, which is not appended")
	flags.StringVarP(&f.name, "replace", "I", "{}", "replace `TEXT` in the command by the input")
	flags.BoolVar(&f.shell, "shell", false, "run the command with sh -c (default: if it is one word with shell syntax)")
	flags.BoolVarP(&f.dryRun, "dry-run", "", false, "print the commands and run nothing")
	flags.BoolVarP(&f.noRunIfEmpty, "no-run-if-empty", "r", false, "no effect, as in xargs -r: without inputs no job runs")
	_ = flags.MarkHidden("no-run-if-empty")
}

func (f *runFlags) registerLimits(flags *pflag.FlagSet) {
	flags.StringVarP(&f.jobs, "jobs", "j", "", "run `N` jobs at once; 0, 50%, +2, -1 or @FILE (default: one per CPU)")
	flags.StringVarP(&f.maxProcs, "max-procs", "P", "", "the same as --jobs, for users of xargs")
	_ = flags.MarkHidden("max-procs")
	flags.StringVar(&f.shared, "shared", "", "each job also takes a slot of `NAME[=MAX]`, which processes share")
	flags.StringVar(&f.priority, "priority", "", "`TIER` of a job, as in high or {2}: lowest … highest or -3 … 3")
	flags.StringVar(&f.key, "key", "", "`KEY` of a job, as in {1}: keys take turns")
	flags.IntVar(&f.keyJobs, "key-jobs", 0, "run at most `N` jobs of one key at once")
	flags.IntVar(&f.lookahead, "lookahead", defaultLookahead, "read up to `N` inputs ahead; priorities order these")
	flags.StringVar(&f.rate, "rate", "", "start at most `N` jobs per time, as in 5/s, 100/m or 1/h")
	secondsVar(flags, &f.delay, "delay", 0, "wait at least `TIME` between two starts")
	flags.Float64Var(&f.load, "load", 0, "start nothing while the load average is `MAX` or more")
	flags.StringVar(&f.memfree, "memfree", "", "start nothing while less than `SIZE` of memory is available")
}

func (f *runFlags) registerFailures(flags *pflag.FlagSet) {
	flags.IntVar(&f.retries, "retries", 0, "run a job that fails up to `N` more times")
	secondsVar(flags, &f.retryDelay, "retry-delay", defaultRetryDelay, "`TIME` before the first retry; it grows")
	secondsVar(flags, &f.timeout, "timeout", 0, "end a job, and all its processes, after `TIME`")
	secondsVar(flags, &f.killAfter, "kill-after", defaultKillAfter, "kill processes that have not ended `TIME` after TERM")
	flags.StringVar(&f.halt, "halt", "never", "stop at `RULE`: now,fail=1 or soon,fail=3 or soon,fail=10%")
	flags.StringVar(&f.joblog, "joblog", "", "write a line for each finished job to `FILE`")
	flags.BoolVar(&f.resume, "resume", false, "skip jobs that the job log lists, also those that failed")
	flags.BoolVar(&f.resumeFailed, "resume-failed", false, "skip jobs that the job log lists as succeeded")
	flags.StringVar(&f.resumeBy, "resume-by", "seq", "identify jobs by their `seq` and command, or by command only")
}

func (f *runFlags) registerOutput(flags *pflag.FlagSet) {
	flags.BoolVar(&f.group, "group", false, "write the output of a job in one piece, when it ends (default)")
	flags.BoolVar(&f.lines, "line-buffer", false, "write output line by line, as it comes")
	flags.BoolVarP(&f.ungroup, "ungroup", "u", false, "let jobs write directly; their output may be mixed")
	flags.BoolVarP(&f.keepOrder, "keep-order", "k", false, "write output in the order of the inputs")
	flags.BoolVar(&f.tag, "tag", false, "put the input and a tab before each line of output")
	flags.StringVar(&f.stdin, "stdin", "", "jobs read `FILE`, as in {}; - is the input of stint itself (default: empty)")
	flags.StringVar(&f.stdout, "stdout", "", "write the output of a job to `FILE` if it succeeds, as in {}.gz")
	flags.BoolVar(&f.stdoutAnywhere, "stdout-anywhere", false, "allow inputs that lead out of the directory of --stdout")
	flags.StringVar(&f.tmpdir, "tmpdir", "", "buffer output in `DIR` (default: TMPDIR or /tmp)")
	flags.StringVar(&f.progress, "progress", "auto", "`HOW` to show progress: auto, bar, plain, json or none")
	flags.BoolVar(&f.asBar, "bar", false, "the same as --progress bar")
	flags.BoolVarP(&f.trace, "trace", "t", false, "write each command to standard error before it starts")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "omit the summary of failed jobs")
}
