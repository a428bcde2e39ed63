package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

const scheduleLong = `Have a server submit a command at each tick of a cron expression: add, list, pause,
resume, remove and trigger such schedules. They are kept with the tasks, and tick as
long as a server runs.`

const scheduleExamples = `  stint schedule add nightly '30 4 * * mon-fri' --zone Europe/Berlin -- ./report.sh
  stint schedule add poll '@every 5m' --missed skip --skip-overlap 'curl -sf https://example.org | ./import'
  stint schedule ls
  stint wait $(stint schedule trigger nightly)`

func newSchedule(s *streams) *cobra.Command {
	cmd := &cobra.Command{
		Use: "schedule", Short: "Submit commands at the ticks of cron expressions", Long: scheduleLong,
		Example: scheduleExamples, Args: aCommand, RunE: help, DisableFlagsInUseLine: true, SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(newScheduleAdd(s), newScheduleLs(s), newScheduleTrigger(s))
	for _, c := range scheduleChangesTable {
		cmd.AddCommand(newScheduleChange(s, c))
	}
	return cmd
}

const scheduleLsLong = `List schedules: when they tick next, the last tick that a task was submitted for, and
what they submit. With --json there is a line of JSON for each.

Exit status: 0, also if there is none; 125 for errors` + partialHelp

func newScheduleLs(s *streams) *cobra.Command {
	c := client{streams: s}
	cmd := &cobra.Command{
		Use: "ls [flags]", Short: "List schedules", Long: scheduleLsLong, Args: nothingElse,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.with(cmd, c.listSchedules) },
	}
	c.register(cmd)
	return cmd
}

func (c *client) listSchedules(ctx context.Context, server *remote.Server) error {
	all, err := server.Schedules(ctx)
	lacking := missing(err, "schedules")
	switch {
	case err != nil && !isPartial(err):
		return err
	case !c.json:
		return cmp.Or(view.Schedules(c.out, all, clock.Now()), lacking)
	}
	for i := range all {
		if err := c.print(view.ScheduleJSON(&all[i])); err != nil {
			return err
		}
	}
	return lacking
}

// scheduleNamed returns the schedule with a name. Errors: [queue.ErrNotFound].
func scheduleNamed(ctx context.Context, server *remote.Server, name string) (queue.ScheduleState, error) {
	all, err := server.Schedules(ctx)
	for i := range all {
		if all[i].Name == name {
			return all[i], nil
		}
	}
	if err != nil {
		return queue.ScheduleState{}, err
	}
	return queue.ScheduleState{}, fmt.Errorf("%w: schedule %q", queue.ErrNotFound, name)
}

// scheduleChange is one of the commands that change a schedule.
type scheduleChange struct {
	name, short, long string
	done              string // printed after the schedule's name
	again             string // the part of the help on exit statuses about a repetition
	reason            bool   // the command has --reason
	do                func(ctx context.Context, server *remote.Server, name, reason string) error
}

// scheduleChangesTable has these commands.
var scheduleChangesTable = []scheduleChange{
	{
		name: "pause", short: "Keep a schedule from ticking", done: "paused", reason: true,
		again: ", also if it was paused already",
		long: "Keep a schedule from ticking until it is resumed. Ticks during the pause are\n" +
			"skipped, and do not count as missed. Its tasks continue.",
		do: func(ctx context.Context, server *remote.Server, name, reason string) error {
			return server.PauseSchedule(ctx, name, queue.Pause{By: operator(), Reason: reason})
		},
	},
	{
		name: "resume", short: "Have a paused schedule tick again", done: "resumed", again: ", also if it was not paused",
		long: "Resume a paused schedule, with the first tick from now on.",
		do: func(ctx context.Context, server *remote.Server, name, _ string) error {
			return server.ResumeSchedule(ctx, name)
		},
	},
	{
		name: "rm", short: "Remove a schedule", done: "removed",
		long: "Remove a schedule. The tasks that it has submitted stay.",
		do: func(ctx context.Context, server *remote.Server, name, _ string) error {
			return server.Unschedule(ctx, name)
		},
	},
}

func newScheduleChange(s *streams, change scheduleChange) *cobra.Command {
	c := client{streams: s}
	var reason string
	cmd := &cobra.Command{
		Use: change.name + " [flags] NAME", Short: change.short, Args: oneSchedule,
		Long: change.long + "\n\nExit status: 0" + change.again + "; 1 if there is no such schedule; 125 for errors.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				if err := change.do(ctx, server, args[0], reason); err != nil {
					return found(err)
				}
				if c.json {
					return c.print(map[string]string{"schedule": args[0], "done": change.done})
				}
				c.printf("schedule %s %s\n", args[0], change.done)
				return nil
			})
		},
	}
	if change.reason {
		cmd.Flags().StringVar(&reason, "reason", "", "record the reason `WHY`, which stint schedule ls prints")
	}
	c.register(cmd)
	return cmd
}

const scheduleTriggerLong = `Submit the task of a schedule now, even if the schedule is paused, and print its ID. The
schedule itself does not change.

Exit status: 0; 1 if there is no such schedule; 125 for errors.`

func newScheduleTrigger(s *streams) *cobra.Command {
	c := client{streams: s}
	cmd := &cobra.Command{
		Use: "trigger [flags] NAME", Short: "Submit the task of a schedule now", Long: scheduleTriggerLong, Args: oneSchedule,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				id, err := server.TriggerSchedule(ctx, args[0])
				if err != nil {
					return found(err)
				}
				return c.printReceipt(queue.Receipt{ID: id})
			})
		},
	}
	c.register(cmd)
	return cmd
}
