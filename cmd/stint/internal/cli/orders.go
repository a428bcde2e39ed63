package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/queue"
)

// order is one of the commands that change tasks.
type order struct {
	name, short, long string
	do                queue.Trigger
	done              string // of a task to which it was done
	// queues: --queue alone, and --all, are the queues themselves.
	queues bool
	states []queue.State // of the tasks that it is for; nil is any
}

const ordersExit = `

Tasks are named by their IDs, or found by the flags, which all have to hold.` + idHelp + `

Exit status: 0 if anything has changed; 1 if nothing has; 125 for errors.`

const queuesHelp = `

With --queue alone it is the queue and not its tasks: nothing of it starts any more,
also of what comes later, and what runs goes on. With --all it is all queues.`

// ordersTable are those commands. Dead letters are retried by their own as well.
var ordersTable = []order{
	{
		name: "pause", short: "Keep tasks or queues from starting", do: queue.OnPause, done: "paused", queues: true,
		long: "Keep tasks from starting until they are resumed. One that runs is told to end, and\n" +
			"begins again when it is resumed." + queuesHelp,
	},
	{
		name: "resume", short: "Have paused tasks or queues go on", do: queue.OnResume, done: "resumed", queues: true,
		long: "Have tasks go on that were paused. With --queue alone it is the queue and not its\n" +
			"tasks, and with --all what pause --all has paused.",
	},
	{
		name: "cancel", short: "Give tasks up", do: queue.OnCancel, done: "cancelled",
		long: "Give tasks up. One that runs is told to end.",
	},
	{
		name: "retry", short: "Run finished tasks again", do: queue.OnRetry, done: "to run again",
		long: "Run dead and cancelled tasks again, with all their attempts, and those at once that\n" +
			"wait for their next attempt.",
	},
}

// orderFlags are the flags of such a command.
type orderFlags struct {
	order
	client
	filterFlags
	all    bool
	reason string
}

func newOrders(s *streams) (cmds []*cobra.Command) {
	for _, o := range ordersTable {
		cmds = append(cmds, newOrder(s, o))
	}
	return cmds
}

func newOrder(s *streams, o order) *cobra.Command {
	f := &orderFlags{order: o, client: client{streams: s}}
	cmd := &cobra.Command{
		Use: o.name + " [flags] [ID]...", Short: o.short, Long: o.long + ordersExit,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return f.give(ctx, server, args)
			})
		},
	}
	f.filterFlags.register(cmd, o.states)
	cmd.Flags().BoolVar(&f.all, "all", false, f.help())
	cmd.Flags().StringVar(&f.reason, "reason", "", "say `WHY`, for others to see")
	f.client.register(cmd)
	return cmd
}

// help is what --all means.
func (o *order) help() string {
	if o.queues {
		return "all queues"
	}
	return "all tasks for which it makes sense"
}

// give gives the order.
func (f *orderFlags) give(ctx context.Context, server *remote.Server, ids []string) error {
	some := len(ids) > 0 || f.narrows() || f.queue != ""
	switch {
	case some == f.all:
		return errors.New("say which tasks: by their IDs, by flags that find them, or --all")
	case f.queues && len(ids) == 0 && !f.narrows():
		return f.giveQueue(ctx, server)
	}
	filter, err := f.filter(ctx, server, ids)
	if err != nil {
		return err
	}
	n, err := server.Command(ctx, queue.Command{Do: f.do, Filter: filter, By: operator(), Reason: f.reason})
	if err != nil {
		return err
	}
	return f.tell(ctx, server, filter, n)
}

// giveQueue gives the order for a queue as a whole, or for all if it has no name.
func (f *orderFlags) giveQueue(ctx context.Context, server *remote.Server) (err error) {
	what := "all queues are"
	if f.queue != "" {
		what = fmt.Sprintf("queue %s is", f.queue)
	}
	if f.do == queue.OnPause {
		err = server.PauseQueue(ctx, f.queue, queue.Pause{By: operator(), Reason: f.reason})
	} else {
		err = server.ResumeQueue(ctx, f.queue)
	}
	if err != nil {
		return err
	}
	if f.json {
		return f.print(map[string]string{"queue": f.queue, "done": f.done})
	}
	printTo(f.out, "%s %s\n", what, f.done)
	return nil
}

// tell says how many tasks have changed, and why those have not that were named.
func (f *orderFlags) tell(ctx context.Context, server *remote.Server, filter queue.Filter, n int) error {
	if f.json {
		if err := f.print(map[string]int{"changed": n}); err != nil {
			return err
		}
	} else {
		noun := "tasks"
		if n == 1 {
			noun = "task"
		}
		printTo(f.out, "%d %s %s\n", n, noun, f.done)
	}
	if n > 0 && n >= len(filter.IDs) {
		return nil
	}
	if n > 0 || f.json {
		return unless(n > 0)
	}
	return nothing(f.unchanged(ctx, server, filter))
}

// unless is the end of a command that has changed nothing, unless it has.
func unless(changed bool) error {
	if changed {
		return nil
	}
	return nothing(nil)
}

// unchanged says why nothing has changed, as far as it can be seen.
func (f *orderFlags) unchanged(ctx context.Context, server *remote.Server, filter queue.Filter) error {
	done := strings.TrimPrefix(f.done, "to ") // as in: cannot be run again
	if len(filter.IDs) == 0 {
		return fmt.Errorf("there is no task that could be %s", done)
	}
	var errs []error
	for _, id := range filter.IDs {
		task, err := server.Get(ctx, id)
		if err == nil {
			err = fmt.Errorf("task %s is %s and cannot be %s", id, task.State, done)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
