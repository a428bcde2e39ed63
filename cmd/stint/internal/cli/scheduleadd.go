package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
)

const scheduleAddLong = `Add a schedule. At each tick of CRON the server submits the command as a task, once.
The command runs in this directory, with the environment of the server, as with stint
submit.

CRON is five fields in quotes, minute, hour, day of month, month and day of week, or
@hourly, @daily, @weekly, @monthly, @yearly or '@every 10m'. It is read in UTC, unless
--zone names another zone. Flags must precede NAME or follow CRON.

A tick is missed if no server runs within a minute of it. --missed once submits one
task for all missed ticks, all submits one task for each, and skip submits none.

Exit status: 0; 1 if there is a schedule NAME already and --replace is not given; 125
for errors.`

// scheduleAddFlags are the flags of stint schedule add.
type scheduleAddFlags struct {
	submitFlags
	zone, missed         string
	skipOverlap, replace bool
}

func newScheduleAdd(s *streams) *cobra.Command {
	f := scheduleAddFlags{submitFlags: submitFlags{client: client{streams: s}}}
	cmd := &cobra.Command{
		Use: "add NAME CRON [flags] [--] command [args]...", Short: "Add a schedule", Long: scheduleAddLong,
		Example: scheduleExamples, Args: cobra.ArbitraryArgs, DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return fmt.Errorf("give a NAME, and a CRON expression in quotes; see %s --help", cmd.CommandPath())
			}
			if err := parseMore(cmd, args[2:]); err != nil { // the flags after CRON
				return err
			}
			words, err := commandWords(cmd, cmd.Flags().Args())
			if err != nil {
				return err
			}
			warnOwnFlags(f.err, cmd, words)
			f.retriesSet = cmd.Flags().Changed("retries")
			s, err := f.schedule(args[0], args[1], words)
			if err != nil {
				return err
			}
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error { return f.add(ctx, server, s) })
		},
	}
	cmd.Flags().SetInterspersed(false) // flags after the command's name belong to the command
	f.scheduleFlags(cmd.Flags())
	f.taskFlags(cmd.Flags())
	f.register(cmd)
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions(tiers(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *scheduleAddFlags) scheduleFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.zone, "zone", "", "read CRON in the time zone `NAME`, as in Europe/Berlin (default: UTC)")
	flags.StringVar(&f.missed, "missed", string(queue.MissedOnce), "make up for missed ticks: `HOW` is once, skip or all")
	flags.BoolVar(&f.skipOverlap, "skip-overlap", false, "skip a tick while the task of the previous tick is unfinished")
	flags.BoolVar(&f.replace, "replace", false, "change the schedule of this name, if there is one")
}

// schedule returns the schedule that the flags and the command describe.
func (f *scheduleAddFlags) schedule(name, expr string, words []string) (queue.Schedule, error) {
	if !strings.ContainsAny(expr, " @") {
		return queue.Schedule{}, fmt.Errorf("CRON is %q: give five fields in quotes, as in '30 4 * * mon-fri', "+
			"or a name such as @daily; without quotes the shell replaces * by file names", expr)
	}
	spec, err := f.spec(words)
	missed := queue.Missed(f.missed)
	if !slices.Contains([]queue.Missed{queue.MissedOnce, queue.MissedSkip, queue.MissedAll}, missed) {
		err = errors.Join(err, fmt.Errorf("--missed is %q: give once, skip or all", f.missed))
	}
	return queue.Schedule{
		Name: name, Cron: expr, Zone: f.zone, Missed: missed, SkipOverlap: f.skipOverlap, Task: spec,
	}, err
}

// add creates the schedule.
func (f *scheduleAddFlags) add(ctx context.Context, server *remote.Server, s queue.Schedule) error {
	if err := f.warnUnknownQueue(ctx, server, f.queue); err != nil {
		return err
	}
	switch _, err := scheduleNamed(ctx, server, s.Name); {
	case err == nil && !f.replace:
		return nothing(fmt.Errorf("there is a schedule %s already: --replace changes it, stint schedule ls shows it", s.Name))
	case err != nil && !errors.Is(err, queue.ErrNotFound):
		return err
	}
	if err := server.Schedule(ctx, s); err != nil {
		return err
	}
	made, err := scheduleNamed(ctx, server, s.Name)
	switch {
	case err != nil:
		return err
	case f.json:
		return f.print(view.ScheduleJSON(&made))
	case made.Next.IsZero():
		f.printf("schedule %s never ticks\n", s.Name)
	default:
		f.printf("schedule %s ticks next at %s\n", s.Name, made.Next.Format(time.RFC3339))
	}
	return nil
}
