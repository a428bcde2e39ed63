package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
)

const idHelp = `

A task is named by its ID, or by the beginning of that, as ls shows it.`

func newShow(s *streams) *cobra.Command {
	c := client{streams: s}
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a task and its life so far",
		Long: "Show all that is known of a task, and its life so far." + idHelp + `

Exit status: 0; 1 if there is no such task; 125 for errors.`,
		Args: oneTask,
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				id, err := server.ID(ctx, args[0])
				if err != nil {
					return found(err)
				}
				task, err := server.Get(ctx, id)
				if err != nil {
					return found(err)
				}
				if c.json {
					return c.print(task)
				}
				return view.Show(c.out, &task, now())
			})
		},
	}
	c.register(cmd)
	return cmd
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

// why says why a task waits.
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
		return c.print(append(reasons[:0:0], reasons...))
	}
	if len(reasons) == 0 {
		task, err := server.Get(ctx, id)
		if err != nil {
			return found(err)
		}
		printTo(c.out, "%s\n", view.State(&task, now()))
	}
	for i := range reasons {
		printTo(c.out, "%s\n", view.Reason(&reasons[i], now()))
	}
	return nil
}

func newStats(s *streams) *cobra.Command {
	c := client{streams: s}
	cmd := &cobra.Command{
		Use: "stats", Short: "Count tasks and workers",
		Long: "Count the tasks of each queue by their states, and name the workers that live.",
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
				return view.Stats(c.out, &stats, now())
			})
		},
	}
	c.register(cmd)
	return cmd
}
