package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/queue"
)

// filterFlags are the flags that select tasks.
type filterFlags struct {
	only                   []queue.State // only tasks in these states
	states                 []string
	queue, kind, key       string
	group, batch, contains string
	labels                 map[string]string
}

// register defines the flags. A command for tasks in some states only has no --state.
func (f *filterFlags) register(cmd *cobra.Command, only []queue.State) {
	flags := cmd.Flags()
	if f.only = only; only == nil {
		flags.StringSliceVar(&f.states, "state", nil, "tasks in `STATE`, as in running or dead,cancelled")
		_ = cmd.RegisterFlagCompletionFunc("state",
			cobra.FixedCompletions(stateNames(), cobra.ShellCompDirectiveNoFileComp))
	}
	flags.StringVar(&f.queue, "queue", "", "tasks of `QUEUE`")
	flags.StringVar(&f.kind, "kind", "", "tasks of `KIND`; those of stint submit are of kind command")
	flags.StringVar(&f.key, "key", "", "tasks of `KEY`")
	flags.StringVar(&f.group, "group", "", "tasks of `GROUP`")
	flags.StringVar(&f.batch, "batch", "", "tasks of the batch `ID`")
	flags.StringVar(&f.contains, "error", "", "tasks with `TEXT` in their error")
	labelVar(flags, &f.labels, "tasks with the label `NAME=VALUE`")
}

// stateNames returns the names of all states.
func stateNames() (names []string) {
	for _, s := range queue.States() {
		names = append(names, s.String())
	}
	return names
}

// labelVar defines a flag for labels.
func labelVar(flags *pflag.FlagSet, labels *map[string]string, usage string) {
	pairsVar(flags, labels, "label", usage)
}

// pairsVar defines a flag for NAME=VALUE, which may be given several times.
func pairsVar(flags *pflag.FlagSet, to *map[string]string, name, usage string) {
	flags.Var(&pairs{to}, name, usage)
}

// pairs is a flag whose values are NAME=VALUE. A value is taken as it is: that of pflag separates pairs
// at commas, and removes quotes.
type pairs struct{ to *map[string]string }

var _ pflag.Value = (*pairs)(nil)

// Set adds a pair. The last value of a name counts.
func (p *pairs) Set(text string) error {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" {
		return errors.New("give NAME=VALUE; each pair has a flag of its own")
	}
	if *p.to == nil {
		*p.to = make(map[string]string)
	}
	(*p.to)[name] = value
	return nil
}

// String returns the pairs, for messages; without any it is empty, so that the help shows no default.
func (p *pairs) String() string {
	if p.to == nil {
		return ""
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*p.to)) {
		all = append(all, name+"="+(*p.to)[name])
	}
	return strings.Join(all, ",")
}

// Type names the kind of value.
func (p *pairs) Type() string { return "pairs" }

// filter returns the filter for the flags and the IDs.
func (f *filterFlags) filter(ctx context.Context, server *remote.Server, ids []string) (queue.Filter, error) {
	filter := queue.Filter{
		Queue: f.queue, Kind: f.kind, Key: f.key, Group: f.group, Error: f.contains, Labels: f.labels, States: f.only,
	}
	var err error
	if filter.IDs, err = server.IDs(ctx, ids); err != nil {
		return filter, found(err)
	}
	if f.batch != "" {
		if filter.Batch, err = server.ID(ctx, f.batch); err != nil {
			return filter, found(err)
		}
	}
	var errs []error
	for _, name := range f.states {
		state, err := queue.ParseState(name)
		if err != nil {
			err = fmt.Errorf("--state %s: there is no such state; the states are %s", name, strings.Join(stateNames(), ", "))
		}
		filter.States, errs = append(filter.States, state), append(errs, err)
	}
	return filter, errors.Join(errs...)
}

// narrows reports whether a flag other than --queue is set.
func (f *filterFlags) narrows() bool {
	return len(f.states) > 0 || f.kind != "" || f.key != "" || f.group != "" || f.batch != "" || f.contains != "" ||
		len(f.labels) > 0
}
