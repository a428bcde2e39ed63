package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

const idHelp = `

A task is named by its ID, by the end of the ID as ls shows it, or by its beginning: at
least four digits, and enough to match no other task.`

// showFlags are the flags of stint show.
type showFlags struct {
	client
	reveal bool
}

func newShow(s *streams) *cobra.Command {
	f := showFlags{client: client{streams: s}}
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a task and its history",
		Long: "Show all that is known of a task, and its history. The values of --env, the\n" +
			"standard input and the password in the URL of an upload are left out unless\n" +
			"--reveal is given." + idHelp + `

Exit status: 0; 1 if there is no such task; 125 for errors.`,
		Args: oneTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return f.show(ctx, server, args[0])
			})
		},
	}
	cmd.Flags().BoolVar(&f.reveal, "reveal", false, "show secrets: values of --env, passwords and, with --json, the input")
	f.register(cmd)
	return cmd
}

// show prints a task.
func (f *showFlags) show(ctx context.Context, server *remote.Server, text string) error {
	id, err := server.ID(ctx, text)
	if err != nil {
		return found(err)
	}
	task, err := server.Get(ctx, id)
	if err != nil {
		return found(err)
	}
	if f.json {
		return f.print(view.TaskJSON(&task, f.reveal))
	}
	return view.Show(f.out, &task, clock.Now(), f.reveal)
}

func newWhy(s *streams) *cobra.Command {
	c := client{streams: s}
	cmd := &cobra.Command{
		Use: "why ID", Short: "Say why a task waits",
		Long: "Say why a task waits, the binding reason first." + idHelp + `

Exit status: 0, also if it waits for nothing; 1 if there is no such task; 125 for
errors.`,
		Args: oneTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return c.why(ctx, server, args[0])
			})
		},
	}
	c.register(cmd)
	return cmd
}

// why prints why a task waits.
func (c *client) why(ctx context.Context, server *remote.Server, text string) error {
	id, err := server.ID(ctx, text)
	if err != nil {
		return found(err)
	}
	reasons, err := server.Why(ctx, id)
	if err != nil {
		return found(err)
	}
	if c.json {
		return c.print(append([]queue.Reason{}, reasons...)) // [] and not null without a reason
	}
	task, err := server.Get(ctx, id)
	if err != nil {
		return found(err)
	}
	if len(reasons) == 0 {
		c.printf("%s\n", view.State(&task, clock.Now()))
	}
	for i := range reasons {
		c.printf("%s\n", view.Reason(&reasons[i], clock.Now()))
	}
	if returned := view.Returned(&task, clock.Now()); returned != "" {
		c.printf("%s\n", returned)
	}
	return nil
}

func newStats(s *streams) *cobra.Command {
	c := client{streams: s}
	cmd := &cobra.Command{
		Use: "stats", Short: "Count tasks and workers",
		Long: "Count the tasks of each queue by their states, show the limits in force, and list the\nlive workers.\n\n" +
			"RUNNING counts the tasks that are leased to workers. A worker leases a few short tasks more\n" +
			"than it has slots, so that it need not wait for the server between two of them.",
		Args: nothingElse,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				stats, err := server.Stats(ctx)
				if err != nil {
					return err
				}
				if c.json {
					return c.print(stats)
				}
				return view.Stats(c.out, &stats, clock.Now())
			})
		},
	}
	c.register(cmd)
	return cmd
}
