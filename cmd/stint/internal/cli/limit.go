package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

const limitLong = `Show and change how much may run, start and wait. Changes take effect at once, and
survive a restart of the server. Running tasks go on when a limit is lowered.

A limit set by this command is in force until this command unsets it: programs that set
their own limits at their start do not change it.

Without a command, stint limit lists the limits, as stint limit ls does.`

const limitScopeHelp = `

--queue NAME is for one queue. --each is the default of each queue that has no limit
of its own: with --each --running 3, two queues run 6 tasks. --all is for all queues
together: with --all --running 3, they run 3 tasks, and take turns for them. --key KEY
narrows each of these to the tasks of one key.`

func newLimit(s *streams) *cobra.Command {
	cmd, ls := newLimitLs(s), newLimitLs(s)
	cmd.Use, cmd.Short, cmd.Long = "limit [flags]", "List, set and unset limits of queues and keys", limitLong+clientHelp
	cmd.Example = "  stint limit set --queue nightly --running 4 --rate 50/s --pending 1000\n" +
		"  stint limit set --all --running 16\n  stint limit set --queue mail --key tenant-7 --running 1\n" +
		"  stint limit unset --queue nightly rate"
	cmd.Args, cmd.DisableFlagsInUseLine, cmd.SuggestionsMinimumDistance = aCommand, true, 2
	cmd.AddCommand(ls, newLimitSet(s), newLimitUnset(s))
	return cmd
}

// newLimitLs returns the command that lists limits.
func newLimitLs(s *streams) *cobra.Command {
	c := client{streams: s}
	name := ""
	cmd := &cobra.Command{
		Use: "ls [flags]", Short: "List the limits", Args: nothingElse,
		Long: `List the limits that are set, how much of each is in use, the operator that
set it, and when. With --json there is a line of JSON for each limit.

Exit status: 0, also if no limit is set; 125 for errors` + partialHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return c.listLimits(ctx, server, name)
			})
		},
	}
	cmd.Flags().StringVar(&name, "queue", "", "only limits of the queue `NAME`, with those of each and of all")
	c.register(cmd)
	return cmd
}

// limits returns the limits that are set; with a [queue.PartialError], those of the groups that answer.
func limits(ctx context.Context, server *remote.Server) ([]view.Limit, error) {
	all, err := server.Settings(ctx)
	if err != nil && !isPartial(err) {
		return nil, err
	}
	stats, statsErr := server.Stats(ctx)
	if statsErr != nil {
		return nil, statsErr
	}
	return view.Limits(all, &stats), err
}

// listLimits lists all limits, or those that apply to a queue.
func (c *client) listLimits(ctx context.Context, server *remote.Server, name string) error {
	all, err := limits(ctx, server)
	if err != nil && !isPartial(err) {
		return err
	}
	lacking := missing(err, "limits")
	if name != "" {
		if err := c.warnUnknownQueue(ctx, server, name); err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(l view.Limit) bool { return l.Scope == view.OfQueue && l.Queue != name })
	}
	if c.json {
		for i := range all {
			if err := c.print(all[i]); err != nil {
				return err
			}
		}
		return lacking
	}
	if len(all) == 0 && lacking == nil {
		c.printf("no limit is set; see stint limit set --help\n")
		return nil
	}
	return cmp.Or(view.LimitTable(c.out, all, clock.Now()), lacking)
}

// limitSetFlags are the flags of stint limit set.
type limitSetFlags struct {
	client
	limitScope
	limitValues
}

func newLimitSet(s *streams) *cobra.Command {
	f := limitSetFlags{client: client{streams: s}}
	cmd := &cobra.Command{
		Use: "set (--queue NAME | --each | --all) [--key KEY] flags", Short: "Set limits", Args: nothingElse,
		Long: `Set limits. Limits that are not named do not change. "none" means no limit, also if a
program has set one or there is a default.` + limitScopeHelp + `

Exit status: 0; 125 for errors.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			change, err := f.change(&f.limitScope)
			if err != nil {
				return err
			}
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error {
				if err := f.warnUnknownQueue(ctx, server, f.queue); err != nil {
					return err
				}
				return f.apply(ctx, server, &f.limitScope, change)
			})
		},
	}
	cmd.DisableFlagsInUseLine = true
	f.limitScope.register(cmd)
	f.limitValues.register(cmd)
	f.client.register(cmd)
	return cmd
}

func newLimitUnset(s *streams) *cobra.Command {
	c := client{streams: s}
	var scope limitScope
	cmd := &cobra.Command{
		Use:   "unset (--queue NAME | --each | --all) [--key KEY] [LIMIT]...",
		Short: "Remove limits that stint limit set has set",
		Long: `Remove limits that stint limit set has set: all of them, or the named ones, which are
running, rate, per-key, key-rate, pending and cap. Limits that programs have set are in
force again.` + limitScopeHelp + `

Exit status: 0; 1 if none of them was set; 125 for errors.`,
		Example: "  stint limit unset --queue nightly\n  stint limit unset --queue nightly rate",
		RunE: func(cmd *cobra.Command, args []string) error {
			fields, err := scope.fields(args)
			if err != nil {
				return err
			}
			return c.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return c.unset(ctx, server, &scope, fields)
			})
		},
	}
	cmd.DisableFlagsInUseLine = true
	scope.register(cmd)
	c.register(cmd)
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if flag, ok := errors.AsType[*pflag.NotExistError](err); ok {
			if _, isLimit := scope.field(flag.GetSpecifiedName()); isLimit == nil {
				return fmt.Errorf("limits are named without dashes here: %s … %s", cmd.CommandPath(), flag.GetSpecifiedName())
			}
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

// unset removes the values that operators have set for some fields.
func (c *client) unset(ctx context.Context, server *remote.Server, scope *limitScope, fields []queue.Field) error {
	before, err := limits(ctx, server)
	if err != nil && !isPartial(err) {
		return err
	}
	wasSet := func(l view.Limit) bool { return scope.has(&l) && l.Operator && slices.Contains(fields, l.Field) }
	if !slices.ContainsFunc(before, wasSet) {
		if err != nil {
			return err
		}
		return nothing(fmt.Errorf("stint limit set has set no such limit for %s; stint limit ls lists the limits", scope))
	}
	return c.apply(ctx, server, scope, queue.Change{Key: scope.key, Unset: fields})
}

// apply makes a change, and prints which of the changed limits are in force.
func (c *client) apply(ctx context.Context, server *remote.Server, scope *limitScope, change queue.Change) error {
	change.Operator, change.By = true, operator()
	if err := server.Change(ctx, scope.queue, change); err != nil {
		return err
	}
	all, err := limits(ctx, server)
	if err != nil && !isPartial(err) { // the group of the queue has answered
		return err
	}
	changed := slices.Concat(change.Set.Fields(), change.Unlimited, change.Unset)
	all = slices.DeleteFunc(all, func(l view.Limit) bool { return !scope.has(&l) || !slices.Contains(changed, l.Field) })
	if c.json {
		for i := range all {
			if err := c.print(all[i]); err != nil {
				return err
			}
		}
		return nil
	}
	var texts []string
	for i := range all {
		text := all[i].String()
		if !all[i].Operator {
			text += " (set by a program)"
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		texts = []string{"unset; no other such limit applies"}
	}
	c.printf("%s: %s\n", scope, strings.Join(texts, ", "))
	return nil
}

// limitScope is what limits apply to: a queue, each queue, or all queues together, and with a
// key only the tasks of that key.
type limitScope struct {
	queue, key string
	each, all  bool
}

func (s *limitScope) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.queue, "queue", "", "for the queue `NAME`")
	cmd.Flags().BoolVar(&s.each, "each", false, "for each queue that has no limit of its own")
	cmd.Flags().BoolVar(&s.all, "all", false, "for all queues together")
	cmd.Flags().StringVar(&s.key, "key", "", "for the tasks of one `KEY` of these")
}

// check reports a scope that is missing or ambiguous.
func (s *limitScope) check() error {
	n := 0
	for _, given := range []bool{s.queue != "", s.each, s.all} {
		if given {
			n++
		}
	}
	if n != 1 {
		return errors.New("say what the limits are for: give one of --queue NAME, --each or --all")
	}
	return nil
}

// String returns the name of the scope.
func (s *limitScope) String() string { return s.limit().For() }

// limit returns a limit of the scope.
func (s *limitScope) limit() *view.Limit {
	l := &view.Limit{Scope: view.OfQueue, Queue: s.queue, Key: s.key}
	switch {
	case s.each:
		l.Scope = view.OfEach
	case s.all:
		l.Scope = view.OfAll
	}
	return l
}

// has reports whether a limit belongs to the scope.
func (s *limitScope) has(l *view.Limit) bool {
	own := s.limit()
	return l.Scope == own.Scope && l.Queue == own.Queue && l.Key == own.Key
}

// field returns the field in the scope for a limit that is named like its flag.
func (s *limitScope) field(name string) (queue.Field, error) {
	names := map[string]queue.Field{
		"running": queue.FieldMax, "rate": queue.FieldRate, "per-key": queue.FieldPerKey,
		"key-rate": queue.FieldKeyRate, "pending": queue.FieldPending, "cap": queue.FieldCaps,
	}
	if s.all {
		names = map[string]queue.Field{"running": queue.FieldTotal, "per-key": queue.FieldTotalPerKey}
	}
	f, known := names[name]
	switch {
	case !known && s.all:
		return "", fmt.Errorf("%s is not a limit of all queues together: running and per-key are; set the others for "+
			"a --queue, or for --each", name)
	case !known && strings.HasSuffix(name, "burst"):
		return "", fmt.Errorf("%q is part of a limit: name %s", name, strings.TrimSuffix(name, "burst")+"rate")
	case !known:
		return "", fmt.Errorf("%q is not a limit: name running, rate, per-key, key-rate, pending or cap", name)
	case s.key != "" && name != "running" && (name != "rate" || s.all):
		return "", fmt.Errorf("one key has no limit %s of its own: set running or, for a queue, rate, or omit --key",
			name)
	}
	return f, nil
}

// fields returns the fields of limits by their names; without names, all of the scope.
func (s *limitScope) fields(names []string) (fields []queue.Field, err error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	if len(names) == 0 {
		outOfScope := func(f queue.Field) bool {
			return s.all != (f == queue.FieldTotal || f == queue.FieldTotalPerKey)
		}
		return slices.DeleteFunc(queue.Fields(), outOfScope), nil
	}
	for _, name := range names {
		f, err := s.field(name)
		if err != nil {
			return nil, err
		}
		fields = append(fields, f)
	}
	return fields, nil
}
