package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/region"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/cmd/stint/internal/shellquote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/proc"
	"github.com/stintgo/stint/shm"
)

const semLong = `Wait for one of N slots (--max), and then become the command.

All processes of this user on this machine share the slots by their name, including
stint run --shared and programs in Go. The slot becomes free when the command has ended,
and all processes that it has started and that still have its files open, in whatever
way they end: kill -9 as well. The command runs in the foreground, in this process,
so its output, its exit status and signals to it are its own; write & after it for the
background. A command of one word with shell syntax in it is run by sh -c, which
stays until the whole script has ended.

The highest tier goes first, and in a tier the process that has waited longest. Up to 64
processes can use the same slots at a time; more wait until they can, in no order.

A few programs, such as ssh, close all inherited files when they start, and would so
release the slot at once. Let timeout (of GNU coreutils, here without a time limit) hold
it for them; unlike a shell, it passes signals on:

  stint sem --name hosts --max 3 -- timeout --foreground 0 ssh example.org uptime

Exit status: that of the command; 75 if there was no slot, with --wait and --try; 125
for errors of stint itself, 126 or 127 if the command cannot be run or is not found;
130 if Ctrl-C ended the wait.`

const semExamples = `  # at most four at once, whatever starts them
  for f in *.wav; do stint sem --name flac --max 4 -- flac -s "$f" & done; wait

  # one at a time, and not at all if it takes too long
  stint sem --name deploy --wait 10m -- ./deploy.sh || echo "exit status $?"

  # from cron: not if the last one still runs
  stint sem --name backup --try -- ./backup.sh`

// exitNoSlot is EX_TEMPFAIL of sysexits(3): try again later.
const exitNoSlot = 75

// semFlags are the flags of stint sem, unparsed.
type semFlags struct {
	spec     region.Spec
	maxSet   bool // --max was given
	tier     string
	wait     time.Duration
	waitSet  bool // --wait was given
	try      bool
	priority stint.Priority
}

func newSem(*streams) *cobra.Command {
	var f semFlags
	cmd := &cobra.Command{
		Use: "sem --name NAME [flags] [--] command [args]...", Short: "Run a command on a slot that processes share",
		Long: semLong, Example: semExamples, Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.maxSet, f.waitSet = cmd.Flags().Changed("max"), cmd.Flags().Changed("wait")
			return f.run(cmd.Context(), args)
		},
	}
	cmd.Flags().SetInterspersed(false) // flags after the command's name belong to the command
	f.register(cmd.Flags())
	_ = cmd.RegisterFlagCompletionFunc("priority", cobra.FixedCompletions(tiers(), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("name", completeRegions)
	return cmd
}

func (f *semFlags) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.spec.Name, "name", "", "share the slots of `NAME`, or of a file if it is a path")
	_ = flags.SetAnnotation("name", required, []string{"true"})
	flags.IntVar(&f.spec.Max, "max", 0, "there are `N` slots (default: as many as NAME had last, or else 1)")
	flags.StringVar(&f.tier, "priority", "", "`TIER`: lowest … highest or -3 … 3 (default: normal)")
	secondsVar(flags, &f.wait, "wait", 0, "give up if there is no slot after `TIME` (default: never)")
	flags.BoolVar(&f.try, "try", false, "give up if there is no slot now")
}

// check reports every problem of the flags.
func (f *semFlags) check(args []string) error {
	var errs [6]error
	errs[0] = f.spec.Check()
	if f.maxSet && f.spec.Max == 0 {
		errs[1] = errors.New("--max 0 would let nothing run: give 1 or more, or leave it out")
	}
	if f.tier != "" {
		f.priority, errs[2] = parseTier("priority", f.tier)
	}
	errs[3] = notNegative("wait", f.wait)
	if f.waitSet && f.try {
		errs[4] = errors.New("--try does not wait, and --wait does: use one of them")
	}
	switch {
	case len(args) == 0:
		errs[5] = errors.New("give a command; see stint sem --help")
	case args[0] == "":
		errs[5] = errors.New("the command is empty: is a variable unset?")
	}
	return errors.Join(errs[:]...)
}

// run executes the command in this process, once it has a slot. It returns only an error.
// Signals have their defaults in Go: INT, TERM and HUP end the wait, QUIT too, with a
// dump of goroutines, and the others have no effect: ending by them, as other programs
// do, is not worth the code. The slot of a process that has died becomes free.
//
// Of the signals ignored at the start, the command ignores HUP, INT, CONT and those of
// terminals (TSTP, TTIN, TTOU). It has the defaults of the others: Go's runtime has
// caught them before any code here runs, and their state before is unknown.
func (f *semFlags) run(ctx context.Context, args []string) error {
	if err := f.check(args); err != nil {
		return err
	}
	if run.LooksLikeScript(args) {
		args = []string{"sh", "-c", held(args[0])}
	}
	if closer := becomes(args); closersTable[closer] {
		words := shellquote.Join(args)
		return fmt.Errorf("%s closes all inherited files, and would release the slot at once; "+
			"let timeout hold it: timeout --foreground 0 %s; or a shell, which does not pass signals on: "+
			"sh -c '\"$@\"; exit $?' sh %s", closer, words, words)
	}
	path, err := proc.Look(args[0])
	if err != nil {
		return &exitError{proc.LookStatus(err), err}
	}
	if err := f.acquire(ctx, filepath.Base(args[0])); err != nil {
		return err
	}
	err = syscall.Exec(path, args, os.Environ()) //nolint:gosec // the purpose of stint sem
	if errors.Is(err, syscall.ENOEXEC) {
		err = fmt.Errorf("%w: a script needs a #! line, or a shell before it, as in sh %s", err, args[0])
	}
	return &exitError{proc.LookStatus(err), fmt.Errorf("%s: %w", args[0], err)}
}

// acquire takes a slot for the command, under whose name the process is listed from now
// on.
func (f *semFlags) acquire(ctx context.Context, name string) error {
	if f.try || f.waitSet && f.wait == 0 {
		return f.tryAcquire(ctx, name)
	}
	if f.waitSet {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, f.wait)
		defer stop()
	}
	r, err := f.spec.Open(ctx, func() {}) // a wait for a slot is as silent
	if err == nil {
		_, full := f.scheduler(r).Acquire(ctx)
		err = errors.Join(r.KeepOnExec(name), full)
	}
	return f.refusal(err)
}

// openMax is how long --try waits for another process that is opening the slots, which
// takes microseconds.
const openMax = time.Second

func (f *semFlags) tryAcquire(ctx context.Context, name string) error {
	ctx, stop := context.WithTimeout(ctx, openMax)
	defer stop()
	r, err := f.spec.TryOpen(ctx)
	if err != nil {
		return f.refusal(err)
	}
	if _, ok := f.scheduler(r).TryAcquire(ctx); !ok {
		return f.noSlot(nil)
	}
	return r.KeepOnExec(name)
}

func (f *semFlags) scheduler(r *shm.Region) stint.Scheduler {
	return stint.New(1, stint.Config{Slots: r.Slots(0)}).At(f.priority)
}

// refusal adds the exit status to an error that means that there was no slot.
func (f *semFlags) refusal(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, shm.ErrFull) {
		return f.noSlot(err)
	}
	return err
}

// noSlot returns an error with the reason why there was no slot, if that is still known.
func (f *semFlags) noSlot(err error) error {
	text := "no slot"
	if f.wait > 0 {
		text = fmt.Sprintf("no slot within %v", f.wait)
	}
	if info, unseen := shm.Inspect(f.spec.Name); unseen == nil && len(info.Slots) == 1 {
		text += ": " + view.Taken(f.spec.Name, info.Slots[0])
	}
	switch {
	case errors.Is(err, shm.ErrFull):
		text += fmt.Sprintf("; %d processes share them, which is the maximum", shm.ProcessesMax)
	case errors.Is(err, shm.ErrStuck): // or many processes are opening them
		text += "; " + err.Error()
	}
	return &exitError{exitNoSlot, errors.New(text)}
}

// completeRegions completes the names of regions.
func completeRegions(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	all, err := shm.List()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	names := make([]cobra.Completion, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
