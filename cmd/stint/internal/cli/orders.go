package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/httpstore"
)

// order is one of the commands that change tasks.
type order struct {
	name, short, long string
	do                queue.Order
	done              string // of a task that was changed
	// queues: --queue alone and --all mean the queues themselves.
	queues bool
	// ends is the state of a running task when it has ended by the order, for which --wait waits; 0 if the
	// order does not end tasks.
	ends   queue.State
	states []queue.State // of the tasks that can be changed; nil is any
}

const ordersExit = `

Name tasks by their IDs, or find them by the flags, all of which must match.` + idHelp + `

Exit status: 0 if a task has changed; 1 if none has; 125 for errors.`

// queuesExit follows ordersExit in the help of commands for queues.
const queuesExit = `
For queues: 0, also if nothing has changed.`

const queuesHelp = `

With --queue alone the queue is paused, and not its tasks: no task of it starts, not even
one submitted later, and running tasks continue. --all pauses all queues. A queue that
was paused both alone and by --all must be resumed in both ways.`

// ordersTable has the commands pause, resume, cancel and retry. Dead letters are retried by a command of their own too.
var ordersTable = []order{
	{
		name: "pause", short: "Keep tasks or queues from starting", do: queue.OrderPause, done: "paused", queues: true,
		ends: queue.Paused,
		long: "Keep tasks from starting until they are resumed. A task that runs is asked to end, and\n" +
			"begins again when it is resumed. With --wait the command returns when it has ended." + queuesHelp,
	},
	{
		name: "resume", short: "Resume paused tasks or queues", do: queue.OrderResume, done: "resumed", queues: true,
		long: "Resume paused tasks. With --queue alone it undoes pause with --queue alone, and with\n" +
			"--all it undoes pause --all.",
	},
	{
		name: "cancel", short: "Cancel tasks", do: queue.OrderCancel, done: "cancelled",
		ends: queue.Cancelled,
		long: "Cancel tasks. A task that runs is asked to end: its command gets SIGTERM, and later\n" +
			"SIGKILL. With --wait the command returns when it has ended.",
	},
	{
		name: "retry", short: "Run dead and cancelled tasks again", do: queue.OrderRetry, done: "to run again",
		long: "Run dead and cancelled tasks again, with all their attempts, and at once start tasks that\n" +
			"wait for their next attempt.",
	},
}

// orderFlags are the flags of such a command.
type orderFlags struct {
	order
	client
	filterFlags
	all    bool
	wait   bool
	reason string
}

func newOrder(s *streams, o order) *cobra.Command {
	f := &orderFlags{order: o, client: client{streams: s}}
	long := o.long + ordersExit
	if o.queues {
		long += queuesExit
	}
	cmd := &cobra.Command{
		Use: o.name + " [flags] [ID]...", Short: o.short, Long: long,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return f.give(ctx, server, args)
			})
		},
	}
	f.filterFlags.register(cmd, o.states)
	cmd.Flags().BoolVar(&f.all, "all", false, f.help())
	cmd.Flags().StringVar(&f.reason, "reason", "", "record the reason `WHY`: stint show and stats print it")
	if o.ends != 0 {
		cmd.Flags().BoolVar(&f.wait, "wait", false, "wait until the tasks that run have ended")
	}
	f.client.register(cmd)
	return cmd
}

// help returns the help of --all.
func (o *order) help() string {
	if o.queues {
		return "all queues"
	}
	return "all tasks whose state allows it"
}

// give executes the order.
func (f *orderFlags) give(ctx context.Context, server *remote.Server, ids []string) error {
	some := len(ids) > 0 || f.narrows() || f.queue != ""
	switch {
	case some && f.all:
		return errors.New("--all is for all, and IDs and flags such as --queue are for some: leave one of them out")
	case !some && !f.all:
		return errors.New("say which tasks: by their IDs, by flags that select them, or --all")
	case f.queues && len(ids) == 0 && !f.narrows() && f.wait:
		return errors.New("--wait is for tasks that are paused: running tasks of a paused queue continue; " +
			"leave --wait out, or select the tasks by IDs or other flags, as in --state running")
	case f.queues && len(ids) == 0 && !f.narrows():
		return f.giveQueue(ctx, server)
	}
	filter, err := f.filter(ctx, server, ids)
	if err != nil {
		return err
	}
	n, done, same, err := f.command(ctx, server, filter)
	if err != nil {
		return err
	}
	var ending []queue.ID
	if f.ends != 0 {
		if ending, err = f.ending(ctx, server, filter); err != nil {
			return err
		}
	}
	var otherwise []error
	if f.wait {
		named := len(same)
		same = slices.DeleteFunc(same, func(id queue.ID) bool { return slices.Contains(ending, id) })
		n = max(n+named-len(same), len(ending)) // with tasks that an earlier command has ordered to end
		if !f.ends.Finished() {                 // tasks that have changed may have got another order since
			done = slices.DeleteFunc(done, func(id queue.ID) bool { return slices.Contains(ending, id) })
			ending = append(ending, done...)
		}
		if otherwise, err = f.waitFor(ctx, server, ending); err != nil {
			return err
		}
		n, ending = n-len(otherwise), nil
	}
	return f.report(n, len(ending), append(f.unchanged(ctx, server, same), otherwise...))
}

// command gives the order. It returns how many tasks have changed, and which of the tasks named by
// ID have changed and which have not, as far as the answers say it. If only IDs select the tasks,
// each gets a call of its own, whose answer says whether that task has changed.
func (f *orderFlags) command(
	ctx context.Context, server *remote.Server, filter queue.Filter,
) (n int, done, same []queue.ID, err error) {
	order := queue.Command{Do: f.do, Filter: filter, All: f.all, By: operator(), Reason: f.reason}
	if len(filter.IDs) < 2 || f.narrows() || f.queue != "" {
		switch n, err = server.Command(ctx, order); n {
		case 0:
			same = filter.IDs
		case len(filter.IDs):
			done = filter.IDs
		}
		return n, done, same, err
	}
	for i, id := range filter.IDs {
		if slices.Contains(filter.IDs[:i], id) {
			continue
		}
		order.Filter.IDs = []queue.ID{id}
		k, err := server.Command(ctx, order)
		if err != nil {
			return n, done, same, err
		}
		if n += k; k == 0 {
			same = append(same, id)
		} else {
			done = append(done, id)
		}
	}
	return n, done, same, nil
}

// ending returns the tasks that are running and ordered to end.
func (f *orderFlags) ending(
	ctx context.Context, server *remote.Server, filter queue.Filter,
) (ids []queue.ID, err error) {
	if len(filter.States) > 0 && !slices.Contains(filter.States, queue.Running) {
		return nil, nil
	}
	filter.States = []queue.State{queue.Running}
	for task, err := range server.Find(ctx, filter) {
		if err != nil {
			return nil, err
		}
		if task.Order == f.do {
			ids = append(ids, task.ID)
		}
	}
	return ids, nil
}

// waitFor waits until tasks have ended. For each that has not ended by the order, otherwise has an error that says
// what it has done instead.
func (f *orderFlags) waitFor(
	ctx context.Context, server *remote.Server, ids []queue.ID,
) (otherwise []error, err error) {
	for _, id := range ids {
		task, err := f.ended(ctx, server, id)
		if err != nil {
			return nil, found(err)
		}
		switch {
		case task.State == f.ends:
		case task.State.Finished():
			otherwise = append(otherwise, f.refused(&task))
		default:
			otherwise = append(otherwise, fmt.Errorf("task %s was resumed", id))
		}
	}
	return otherwise, nil
}

// ended waits until a task is finished or, if the order does not finish it, until it has ended, by this order or
// another, or was resumed. The state that ended returns is durable.
func (f *orderFlags) ended(ctx context.Context, server *remote.Server, id queue.ID) (task queue.Task, err error) {
	if f.ends.Finished() {
		return server.Wait(ctx, id, f.away)
	}
	const every = 100 * time.Millisecond
	again := time.NewTicker(every)
	defer again.Stop()
	for isAway := false; ; {
		var page []queue.Task
		page, err = server.Page(ctx, queue.Filter{IDs: []queue.ID{id}}, queue.Page{Limit: 1, Durable: true})
		if err == nil && len(page) == 0 {
			err = fmt.Errorf("%w: %s", queue.ErrNotFound, id)
		}
		switch {
		case err == nil && (page[0].State != queue.Running || page[0].Order == 0):
			return page[0], nil
		case err != nil && (!errors.Is(err, queue.ErrUnavailable) || errors.Is(err, httpstore.ErrNoAnswer)):
			return task, err
		case err != nil && !isAway:
			f.away(err)
		}
		isAway = err != nil
		select {
		case <-again.C:
		case <-ctx.Done():
			return task, context.Cause(ctx)
		}
	}
}

// giveQueue executes the order for a queue as a whole, or for all if it has no name.
func (f *orderFlags) giveQueue(ctx context.Context, server *remote.Server) (err error) {
	if f.do == queue.OrderResume && f.reason != "" {
		return errors.New("--reason is kept with a paused queue, and a resumed one has none: leave it out")
	}
	if err := f.warnUnknownQueue(ctx, server, f.queue); err != nil {
		return err
	}
	what := "all queues are"
	if f.queue != "" {
		what = fmt.Sprintf("queue %s is", f.queue)
	}
	if f.do == queue.OrderPause {
		err = server.PauseQueue(ctx, f.queue, queue.Pause{By: operator(), Reason: f.reason})
	} else {
		err = server.ResumeQueue(ctx, f.queue)
	}
	if err != nil {
		return err
	}
	if f.do == queue.OrderResume {
		if err := f.warnStillPaused(ctx, server); err != nil {
			return err
		}
	}
	if f.json {
		return f.print(map[string]string{"queue": f.queue, "done": f.done})
	}
	f.printf("%s %s\n", what, f.done)
	return nil
}

// warnStillPaused reports queues that stay paused after a resume: by the pause of all
// queues, or by pauses of single ones.
func (f *orderFlags) warnStillPaused(ctx context.Context, server *remote.Server) error {
	all, err := server.Settings(ctx)
	if err != nil && !isPartial(err) {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch settings := all[name]; {
		case settings.Paused == nil:
		case name == "":
			printTo(f.err, "stint: all queues are still paused: stint resume --all resumes them\n")
		case f.queue == "":
			printTo(f.err, "stint: queue %s is still paused: stint resume --queue %s resumes it\n", name, name)
		}
	}
	return nil
}

// report prints how many tasks have changed, how many of them are running and were asked
// to end, and why others have not changed.
func (f *orderFlags) report(n, ending int, unchanged []error) error {
	ending = min(ending, n)
	switch {
	case f.json:
		if err := f.print(changed{n, ending}); err != nil {
			return err
		}
	case ending == 0 || n > ending:
		f.printf("%s %s\n", view.Count(n-ending, "task"), f.done)
	}
	if ending > 0 && !f.json {
		it := "it has"
		if ending > 1 {
			it = "they have"
		}
		f.printf("%s running and asked to end; --wait waits until %s ended\n", view.Count(ending, "task"), it)
	}
	switch {
	case n == 0 && f.json:
		return nothing(nil)
	case n == 0 && len(unchanged) == 0:
		return nothing(fmt.Errorf("no task can be %s", f.infinitive()))
	case n == 0:
		return nothing(errors.Join(unchanged...))
	case len(unchanged) > 0:
		printTo(f.err, "stint: %s\n", plainText(errors.Join(unchanged...)))
	}
	return nil
}

// infinitive returns what cannot be done to a task, as in: it cannot be run again.
func (f *orderFlags) infinitive() string { return strings.TrimPrefix(f.done, "to ") }

// changed is the result of an order, as JSON.
type changed struct {
	Changed int `json:"changed"`
	Ending  int `json:"asked_to_end,omitempty"` // running tasks among them
}

// unchanged returns the likely reasons why tasks have not changed.
func (f *orderFlags) unchanged(ctx context.Context, server *remote.Server, ids []queue.ID) (reasons []error) {
	for _, id := range ids {
		task, err := server.Get(ctx, id)
		if err == nil {
			err = f.refused(&task)
		}
		reasons = append(reasons, err)
	}
	return reasons
}

// refused returns the likely reason why a task has not changed.
func (f *orderFlags) refused(task *queue.Task) error {
	if task.Order == f.do {
		return fmt.Errorf("task %s is %s and has been asked to end already", task.ID, task.State)
	}
	if task.Order == queue.OrderCancel {
		return fmt.Errorf("task %s cannot be %s: it is being cancelled", task.ID, f.infinitive())
	}
	return fmt.Errorf("task %s cannot be %s: its state is %s", task.ID, f.infinitive(), task.State)
}
