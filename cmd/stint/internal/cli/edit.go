package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

const editLong = `Change the tier, key, start time, deadline or labels of tasks that are scheduled, held,
waiting or paused. Running and finished tasks cannot be edited. An edited task keeps
its age: it takes the place in the queue that it would have if it had been submitted
with its new tier and key.

--key "" removes the key, --at now the start time, and --deadline none the deadline.
--label adds a label, or replaces the value of the label with this name.

Exit status: 0 if all tasks were edited; 1 if at least one was not; 125 for errors.`

// editFlags are the flags of stint edit.
type editFlags struct {
	client
	tier, key, at, deadline string
	delay                   time.Duration
	labels                  map[string]string
	reason                  string
}

func newEdit(s *streams) *cobra.Command {
	f := &editFlags{client: client{streams: s}}
	cmd := &cobra.Command{
		Use: "edit [flags] ID...", Short: "Change tier, key, times and labels of waiting tasks", Long: editLong + idHelp,
		Example: "  stint edit --tier high 9f3a8057\n  stint edit --at 06:00 --label night=yes 9f3a8057", Args: someTasks,
		RunE: func(cmd *cobra.Command, args []string) error {
			edit, err := f.edit(cmd)
			if err != nil {
				return err
			}
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return f.give(ctx, server, args, edit)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.tier, "tier", "", "new `TIER`: lowest … highest or -3 … 3")
	flags.StringVar(&f.key, "key", "", "new `KEY`; empty removes it")
	_ = flags.SetAnnotation("key", emptyMeans, []string{"the key is removed"})
	secondsVar(flags, &f.delay, "delay", 0, "start after `TIME` from now")
	flags.StringVar(&f.at, "at", "", "start at `TIME`, such as 06:00 or 2026-11-21T06:00:00Z; now is at once")
	flags.StringVar(&f.deadline, "deadline", "", "give up if it has not started by `TIME`; none removes the deadline")
	labelVar(flags, &f.labels, "add or replace the label `NAME=VALUE`; may be given several times")
	flags.StringVar(&f.reason, "reason", "", "record `WHY` in the history of the task")
	f.register(cmd)
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions(tiers(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// edit returns the edit that the given flags ask for.
func (f *editFlags) edit(cmd *cobra.Command) (*queue.Edit, error) {
	given := cmd.Flags().Changed
	edit := &queue.Edit{Labels: f.labels}
	var errs [4]error
	if given("tier") {
		var tier stint.Priority
		tier, errs[0] = parseTier("tier", f.tier)
		edit.Tier = &tier
	}
	if given("key") {
		edit.Key = &f.key
	}
	switch {
	case given("at") && given("delay"):
		errs[1] = errors.New("--at and --delay both set the start time: use one of them")
	case given("delay"):
		errs[1] = notNegative("delay", f.delay)
		edit.RunAt = new(clock.Now().Add(f.delay))
	case given("at"):
		edit.RunAt, errs[2] = timeOrWord("--at", f.at, "now")
	}
	if given("deadline") {
		if edit.Deadline, errs[3] = timeOrWord("--deadline", f.deadline, "none"); errs[3] == nil {
			errs[3] = past(*edit.Deadline)
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if edit.Tier == nil && edit.Key == nil && edit.RunAt == nil && edit.Deadline == nil && len(edit.Labels) == 0 {
		return nil, fmt.Errorf("nothing to change: add a flag such as --tier high; see %s --help", cmd.CommandPath())
	}
	return edit, nil
}

// timeOrWord parses a time; word stands for the zero time.
func timeOrWord(flag, text, word string) (*time.Time, error) {
	if text == word {
		return new(time.Time{}), nil
	}
	at, err := timeOf(flag, text)
	return &at, err
}

// give edits the tasks one by one, and reports those that could not be edited.
func (f *editFlags) give(ctx context.Context, server *remote.Server, texts []string, edit *queue.Edit) error {
	ids, err := server.IDs(ctx, texts)
	if err != nil {
		return found(err)
	}
	n, errs := 0, []error(nil)
	for _, id := range ids {
		done, err := server.Command(ctx, queue.Command{
			Do: queue.OrderEdit, Edit: edit, Filter: queue.Filter{IDs: []queue.ID{id}}, By: operator(), Reason: f.reason,
		})
		if err != nil {
			return err
		}
		if n += done; done == 0 {
			errs = append(errs, uneditable(ctx, server, id))
		}
	}
	if f.json {
		err = f.print(changed{Changed: n})
	} else {
		f.printf("%s edited\n", view.Count(n, "task"))
	}
	if err == nil && len(errs) > 0 {
		return nothing(errors.Join(errs...))
	}
	return err
}

// uneditable returns the reason why an edit left a task unchanged.
func uneditable(ctx context.Context, server *remote.Server, id queue.ID) error {
	task, err := server.Get(ctx, id)
	switch {
	case err != nil:
		return err
	case task.State == queue.Running:
		return fmt.Errorf("task %s is running and cannot be edited: pause it, edit it, then resume it", id)
	case task.State.Finished():
		return fmt.Errorf("task %s is %s: finished tasks cannot be edited", id, task.State)
	}
	return fmt.Errorf("task %s was not edited: its deadline must be after its start, and its labels at most 32", id)
}
