package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

const lsLong = `List tasks, the newest first. A task is listed if it matches all flags.

The IDs shown are the ends of the whole IDs, and can be used in their place. EXIT and
TOOK are the exit status and the duration of the last attempt. On a terminal, lines are
cut to its width. With --json there is a line of JSON for each task; docs/serve.md has
its fields.

Exit status: 0, also if there is no such task; 125 for errors` + partialHelp

// lsMost is the default number of listed tasks.
const lsMost = 50

// lsFlags are the flags of stint ls.
type lsFlags struct {
	client
	filterFlags
	most   int
	oldest bool
	behind string
}

// newLs returns a command that lists tasks, in some states if any are given.
func newLs(s *streams, states ...queue.State) *cobra.Command {
	f := lsFlags{client: client{streams: s}}
	cmd := &cobra.Command{
		Use: "ls [flags]", Short: "List tasks", Long: lsLong, Args: nothingElse,
		Example: "  stint ls --state running,waiting\n  stint ls --state dead --error timeout --json | jq -r .id",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.with(cmd, f.list)
		},
	}
	f.filterFlags.register(cmd, states)
	cmd.Flags().IntVarP(&f.most, "max", "n", lsMost, "list `N` tasks; 0 lists all")
	cmd.Flags().BoolVar(&f.oldest, "oldest", false, "the oldest first")
	cmd.Flags().StringVar(&f.behind, "behind", "", "continue after the task `ID`, for the next page")
	f.client.register(cmd)
	return cmd
}

// list lists the matching tasks.
func (f *lsFlags) list(ctx context.Context, server *remote.Server) error {
	if f.most < 0 {
		return errors.New("--max is negative; 0 lists all")
	}
	filter, err := f.filter(ctx, server, nil)
	if err != nil {
		return err
	}
	page := queue.Page{Newest: !f.oldest}
	if f.behind != "" {
		if page.After, err = server.ID(ctx, f.behind); err != nil {
			return found(err)
		}
	}
	const size = 500
	left, first, more := f.most, true, true
	var lacking error // of the first page that lacks the tasks of some groups
	for ; more && (f.most == 0 || left > 0); first = false {
		if page.Limit = size; f.most > 0 {
			page.Limit = min(size, left)
		}
		tasks, err := server.Page(ctx, filter, page)
		if err != nil && !isPartial(err) {
			return err
		}
		lacking = cmp.Or(lacking, err)
		if err := f.show(tasks, first); err != nil {
			return err
		}
		if more = len(tasks) == page.Limit; more {
			page.After = tasks[len(tasks)-1].ID
			left -= len(tasks)
		}
	}
	if more {
		printTo(f.err, "stint: there may be more: -n %d, or --behind %s\n", 10*f.most, page.After)
	}
	return missing(lacking, "tasks")
}

// show prints a page. If the first page is empty, it says so, but prints nothing with
// --json.
func (f *lsFlags) show(tasks []queue.Task, first bool) error {
	if !f.json {
		columns := 0
		if isTerminal(f.out) {
			columns = width(f.out)
		}
		return view.Tasks(f.out, tasks, first, clock.Now(), columns)
	}
	for i := range tasks {
		if err := f.print(view.TaskJSON(&tasks[i], false)); err != nil {
			return err
		}
	}
	return nil
}
