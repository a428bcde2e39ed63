package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/internal/clock"
	"github.com/stintgo/stint/queue"
)

const submitLong = `Submit a command to a server, and print the ID of its task.

The task is durable when the ID is printed. The command runs later, in this
directory, with the environment of the server. One word with shell syntax in it
is run by sh -c. It fails if its exit status is not 0. A command that fails is not
run again, unless --retries says so; the time between attempts grows. A command that
ran when the server was killed begins again in any case.

Flags must precede the command: words after its first word belong to the command, even
if they look like flags. If one of them is a flag of submit, a line on standard error
says so, unless -- precedes the command. After a command that is one word with shell
syntax, as in 'make | tee log', flags may follow as well.

With --from, each line of a file is a task: a command as above, or, if the line begins
with {, a task as JSON, whose fields are in docs/serve.md. The other flags apply to all
lines. Lines are submitted in batches, each as a whole, and IDs are printed when their
tasks are durable. The first line that is refused ends the command; the lines before it
have been submitted.

Exit status: 0 if it was accepted, also if a task with this --unique existed already;
125 for errors.`

const submitExamples = `  stint submit -- convert big.tif small.png
  stint submit --tier high --key tenant-7 --retries 5 ./import.sh today.csv
  stint submit 'pg_dump shop | gzip > shop.sql.gz'

  # one after the other
  first=$(stint submit make data)
  stint submit --after $first make report
  stint submit --after-any $first ./clean-up.sh

  # once, however often this is called; not before six in the morning
  stint submit --unique report-2026-11-21 --at 06:00 ./report.sh

  # one command per line, many at a time; can be repeated after a crash
  stint submit --from commands.txt --unique-prefix import-7
  jq -c '{key: .tenant, command: {args: ["./import", .file]}}' jobs | stint submit --from -

  # a task for workers in Go
  stint submit --kind email --payload '{"to":"gopher"}'`

// submitFlags are the flags of stint submit, unparsed.
type submitFlags struct {
	client
	queue, tier, key, unique, group string
	after, afterAny                 []string
	delay, timeout, uniqueFor       time.Duration
	at, deadline                    string
	retries                         int
	retriesSet                      bool // --retries was given
	labels                          map[string]string
	dir, stdin                      string
	env                             []string
	kind, payload                   string
	from, uniquePrefix              string
}

func newSubmit(s *streams) *cobra.Command {
	f := submitFlags{client: client{streams: s}}
	cmd := &cobra.Command{
		Use: "submit [flags] [--] command [args]...", Short: "Submit a command to a server",
		Long: submitLong, Example: submitExamples, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			args, err := commandWords(cmd, args)
			if err != nil {
				return err
			}
			warnOwnFlags(f.err, cmd, args)
			f.retriesSet = cmd.Flags().Changed("retries")
			if f.from != "" {
				return f.submitFrom(cmd, args)
			}
			// The input is read before with catches signals, because a read may block for ever.
			spec, err := f.spec(args)
			if err != nil {
				return err
			}
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return f.submit(ctx, server, spec)
			})
		},
	}
	cmd.Flags().SetInterspersed(false) // flags after the command's name belong to the command
	f.flags(cmd.Flags())
	f.register(cmd)
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions(tiers(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *submitFlags) flags(flags *pflag.FlagSet) {
	f.taskFlags(flags)
	flags.StringVar(&f.unique, "unique", "", "submit nothing if there is a task with this unique `NAME`")
	secondsVar(flags, &f.uniqueFor, "unique-for", 0, "keep the name for `TIME` at least, also if the task is forgotten")
	flags.StringArrayVar(&f.after, "after", nil, "start when task `ID` has succeeded; may be given several times")
	flags.StringArrayVar(&f.afterAny, "after-any", nil, "start when task `ID` is finished, whatever its outcome")
	secondsVar(flags, &f.delay, "delay", 0, "start after `TIME`")
	flags.StringVar(&f.at, "at", "", "start at `TIME`, as in 06:00, '2026-11-21 06:00' or 2026-11-21T06:00:00Z")
	flags.StringVar(&f.deadline, "deadline", "", "give up if it has not started by `TIME`")
	flags.StringVar(&f.from, "from", "", "submit each line of `FILE`: a command, or a task as JSON; - is standard input")
	flags.StringVar(&f.uniquePrefix, "unique-prefix", "", "with --from: the task of line N has the unique name `NAME`-N")
}

// taskFlags defines the flags for the task itself, not for its start.
func (f *submitFlags) taskFlags(flags *pflag.FlagSet) {
	flags.StringVar(&f.queue, "queue", "", "put it into `QUEUE` (default: default)")
	flags.StringVar(&f.tier, "tier", "", "`TIER`: lowest … highest or -3 … 3 (default: normal)")
	flags.StringVar(&f.key, "key", "", "`KEY` of the task: keys take turns, and may have limits")
	flags.StringVar(&f.group, "group", "", "run after the tasks of `GROUP` that were submitted before, one at a time")
	secondsVar(flags, &f.timeout, "timeout", 0, "end an attempt after `TIME`; it has failed then")
	flags.IntVar(&f.retries, "retries", 0, "try again up to `N` times if it fails (default: 0; 2 with --kind)")
	labelVar(flags, &f.labels, "label `NAME=VALUE`, by which it can be found; may be given several times")
	flags.StringVar(&f.dir, "dir", "", "run it in `DIR` (default: here)")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "set `NAME=VALUE` in its environment; NAME alone: its value here")
	flags.StringVar(&f.stdin, "stdin", "", "give it `FILE` as standard input, up to 1 MiB; - is that of submit")
	flags.StringVar(&f.kind, "kind", serve.Kind, "submit a task of `KIND` for other workers, with --payload")
	flags.StringVar(&f.payload, "payload", "", "`JSON` that is the task's payload")
}

func tiers() (names []string) {
	for p := stint.Lowest; p <= stint.Highest; p++ {
		names = append(names, p.String())
	}
	return names
}

// submit submits the task.
func (f *submitFlags) submit(ctx context.Context, server *remote.Server, spec queue.Spec) error {
	if err := f.comesAfter(ctx, server, &spec); err != nil {
		return err
	}
	if err := f.warnUnknownQueue(ctx, server, f.queue); err != nil {
		return err
	}
	receipts, err := server.Submit(ctx, server.Prepare(spec))
	switch {
	case err != nil && ctx.Err() != nil && !refused(err): // client.with prints no error after a signal
		again := "give --unique to submit it again safely"
		if f.unique != "" {
			again = "with the same --unique it can be submitted again safely"
		}
		printTo(f.err, "stint: interrupted before an answer: the server may have accepted the task; %s\n", again)
		return err
	case err != nil:
		return &onlyTaskError{err}
	}
	if receipts[0].Existing && !f.json {
		printTo(f.err, "stint: a task with this --unique exists already\n")
	}
	return f.printReceipt(receipts[0])
}

// printReceipt prints the ID of a task that was submitted, or its receipt as JSON.
func (c *client) printReceipt(r queue.Receipt) (err error) {
	if c.json {
		err = c.print(r)
	} else {
		_, err = fmt.Fprintln(c.out, r.ID)
	}
	if err != nil {
		return fmt.Errorf("task %s was submitted, but its ID cannot be printed: %w", r.ID, err)
	}
	return nil
}

// onlyTaskError is the error of submitting one task, without the task's index.
type onlyTaskError struct{ error }

func (e *onlyTaskError) Error() string { return strings.TrimPrefix(e.error.Error(), "task 0: ") }

func (e *onlyTaskError) Unwrap() error { return e.error }

// comesAfter sets the tasks that a task waits for.
func (f *submitFlags) comesAfter(ctx context.Context, server *remote.Server, spec *queue.Spec) (err error) {
	if spec.After, err = server.IDs(ctx, f.after); err != nil {
		return fmt.Errorf("--after: %w", err)
	}
	if spec.AfterAny, err = server.IDs(ctx, f.afterAny); err != nil {
		return fmt.Errorf("--after-any: %w", err)
	}
	return nil
}

// spec returns the task that the flags and the command describe. It reports every
// problem.
func (f *submitFlags) spec(args []string) (queue.Spec, error) {
	switch {
	case f.uniquePrefix != "":
		return queue.Spec{}, errors.New("--unique-prefix is for the lines of --from: for one command, give --unique")
	case f.uniqueFor != 0 && f.unique == "":
		return queue.Spec{}, errors.New("--unique-for says how long the name of --unique is kept: give that, too")
	}
	spec, err := f.asked()
	payload, payloadErr := f.payloadOf(args)
	spec.Payload = payload
	return spec, errors.Join(err, payloadErr)
}

// asked returns the options of a task that do not depend on its command.
func (f *submitFlags) asked() (queue.Spec, error) {
	spec := queue.Spec{
		Kind: f.kind,
		Options: queue.Options{
			Queue:     f.queue,
			Key:       f.key,
			Unique:    f.unique,
			Group:     f.group,
			Timeout:   f.timeout,
			Labels:    f.labels,
			UniqueFor: f.uniqueFor,
		},
	}
	var errs [5]error
	if f.tier != "" {
		spec.Tier, errs[0] = parseTier("tier", f.tier)
	}
	if f.retriesSet || f.kind == serve.Kind { // repeating a command may do harm
		spec.MaxAttempts, errs[4] = attempts(f.retries)
	}
	spec.RunAt, errs[1] = timeOf("--at", f.at)
	if f.delay > 0 {
		if f.at != "" {
			errs[1] = errors.New("--at and --delay both say when it starts: use one of them")
		}
		spec.RunAt = clock.Now().Add(f.delay)
	}
	spec.Deadline, errs[2] = timeOf("--deadline", f.deadline)
	errs[2] = cmp.Or(errs[2], past(spec.Deadline))
	errs[3] = errors.Join(notNegative("delay", f.delay), notNegative("timeout", f.timeout),
		notNegative("unique-for", f.uniqueFor))
	return spec, errors.Join(errs[:]...)
}

// parseTier parses the tier of a flag.
func parseTier(flag, text string) (stint.Priority, error) {
	tier, err := stint.ParsePriority(text)
	if err != nil {
		return 0, fmt.Errorf("--%s: %w", flag, err)
	}
	return tier, nil
}

// retriesMax is the highest number of --retries.
const retriesMax = 1_000_000_000

// attempts returns the number of attempts of --retries.
func attempts(retries int) (int, error) {
	if retries < 0 || retries > retriesMax {
		return 0, fmt.Errorf("--retries %d: give a number from 0 to %d", retries, retriesMax)
	}
	return retries + 1, nil
}

// past returns an error if a deadline has passed: the task would be dead at once.
func past(deadline time.Time) error {
	if deadline.IsZero() || deadline.After(clock.Now()) {
		return nil
	}
	return fmt.Errorf("--deadline %s has passed: give a time in the future", deadline.Format(time.RFC3339))
}

// timeOf parses a local time; an empty text is the zero time. A time of day is the next
// such time.
func timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{
		time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04",
	} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{"15:04", "15:04:05"} {
		if day, err := time.Parse(layout, text); err == nil {
			return next(day, clock.Now()), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q: give a time, as in 06:00, 2026-11-21 06:00 or 2026-11-21T06:00:00Z", flag, text)
}

// next returns the first time after now with that time of day.
func next(timeOfDay, now time.Time) time.Time {
	for day := 0; ; day++ {
		y, m, d := now.Date()
		at := time.Date(y, m, d+day, timeOfDay.Hour(), timeOfDay.Minute(), timeOfDay.Second(), 0, now.Location())
		if at.After(now) {
			return at
		}
	}
}
