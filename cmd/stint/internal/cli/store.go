package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue/relocate"
)

const storeCopyLong = `Copy all tasks of the store FROM to the empty store TO, with limits, schedules,
results and leases, and close FROM for good: servers that are started with FROM refuse,
and name TO. So no task is lost and none runs twice.

A store is the directory of a server (stint serve --dir), or the URL of a database
server (stint serve --store), where --from-group and --to-group name a group of stint
serve --group. Set a URL with a password in an environment variable, because other users
can see the arguments of a process: env:NAME is the URL in NAME.

No server may use FROM or TO meanwhile: end them first, and all programs that submit to
FROM by pgstore.SubmitTx. A million tasks take about ten seconds. If the copy is
interrupted, the same command completes it. The logs of commands stay in the directories
of the servers that ran them.`

const storeCopyExamples = `  stint store copy ./stint-data postgres://db.example.com/jobs
  STINT_STORE=redis://:secret@db.example.com stint store copy env:STINT_STORE ./stint-data`

func newStore(s *streams) *cobra.Command {
	var fromGroup, toGroup string
	cmd := &cobra.Command{
		Use: "store", Short: "Move tasks between a directory, PostgreSQL and Redis",
		Args: aCommand, RunE: help, DisableFlagsInUseLine: true, SuggestionsMinimumDistance: 2,
	}
	copies := &cobra.Command{
		Use: "copy FROM TO", Short: "Copy all tasks to another store, and close the first", Long: storeCopyLong,
		Example: storeCopyExamples, Args: twoStores,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			context.AfterFunc(ctx, stop) // a second signal ends the process
			log := slog.New(slog.NewTextHandler(s.err, nil))
			from, err := place(args[0], fromGroup, log)
			if err != nil {
				return err
			}
			to, err := place(args[1], toGroup, log)
			if err != nil {
				return err
			}
			moved, err := relocate.Move(ctx, from, to)
			if err != nil {
				return err
			}
			are := "are"
			if moved.Tasks == 1 {
				are = "is"
			}
			_, err = fmt.Fprintf(s.out, "%s %s in %s now; %s is closed\n",
				view.Count(moved.Tasks, "task"), are, to.Name, from.Name)
			return err
		},
	}
	copies.Flags().StringVar(&fromGroup, "from-group", "", "copy `GROUP` of FROM (default: the default group)")
	copies.Flags().StringVar(&toGroup, "to-group", "", "copy to `GROUP` of TO (default: the default group)")
	cmd.AddCommand(copies)
	return cmd
}

// place returns the store that an argument and a group name.
func place(arg, group string, log *slog.Logger) (relocate.Place, error) {
	if name, ok := strings.CutPrefix(arg, "env:"); ok {
		value := os.Getenv(name)
		if !strings.Contains(value, "://") {
			return relocate.Place{}, errors.New("the environment variable " + name + " has no URL")
		}
		arg = value
	}
	if group != "" {
		if err := checkGroup(group); err != nil {
			return relocate.Place{}, err
		}
	}
	return serve.Place(arg, group, log)
}
