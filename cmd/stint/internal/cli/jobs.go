package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
)

const jobsLong = `Print how many commands the server runs at once, or change that while it runs.

N is what stint serve -j takes: a number; 0 for as many as the system allows; 50% of
the processors; +2 or -1 (after --) relative to them. With a larger number, commands
that wait start at once. With a smaller one, running commands continue to their end, and
fewer start. The number is in force until the server ends: the next start has its own -j.
Workers in other processes are not changed. If the server's limits on open files or
processes allow fewer than N, or leave few connections for clients, standard error says so.

Exit status: 0; 125 for errors.`

const jobsExamples = `  # how many commands run at once
  stint jobs

  # eight from now on
  stint jobs 8`

func newJobs(s *streams) *cobra.Command {
	c := client{streams: s}
	cmd := &cobra.Command{
		Use: "jobs [N]", Short: "Print or change how many commands run at once", Long: jobsLong, Example: jobsExamples,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("give one number of commands, or none; see %s --help", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			to := ""
			if len(args) == 1 {
				if to = args[0]; to == "" {
					return fmt.Errorf("the number of commands is empty; see %s --help", cmd.CommandPath())
				}
			}
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return c.jobs(ctx, server, to)
			})
		},
	}
	c.register(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		flag, ok := errors.AsType[*pflag.NotExistError](err)
		if ok && strings.Trim(flag.GetSpecifiedName(), "0123456789") == "" {
			return fmt.Errorf("put -- before a number that begins with -, as in %s -- -1", cmd.CommandPath())
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

// jobsJSON is what stint jobs --json prints.
type jobsJSON struct {
	Most    int `json:"most"`
	Running int `json:"running"`
}

// jobs prints how many commands run at once, after changing that number unless to is
// empty.
func (c *client) jobs(ctx context.Context, server *remote.Server, to string) error {
	most, running, notes, err := server.Jobs(ctx, clock.Now(), to)
	if err != nil {
		return err
	}
	for _, note := range notes {
		printTo(c.err, "stint: %s\n", note)
	}
	if c.json {
		return c.print(jobsJSON{most, running})
	}
	c.printf("%s at once, %d running\n", view.Count(most, "command"), running)
	return nil
}
