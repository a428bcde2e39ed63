package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	stint "github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/run"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
)

const submitLong = `Submit a command to a server, and print the ID of its task.

The task is durable when the ID is there. The command runs later, in this
directory, with the environment of the server. One word with shell syntax in it
is run by sh -c. It fails if its exit status is not 0, and is tried again after a
while, which grows.

Exit status: 0 if it was accepted, also if there was one with its --unique already;
125 for errors.`

const submitExamples = `  stint submit -- convert big.tif small.png
  stint submit --tier high --key tenant-7 --retries 5 ./import.sh today.csv
  stint submit 'pg_dump shop | gzip > shop.sql.gz'

  # one after the other
  first=$(stint submit make data)
  stint submit --after $first make report

  # once, however often this is called; not before tomorrow
  stint submit --unique report-2026-11-21 --at 2026-11-21T06:00:00+01:00 ./report.sh

  # a task for workers in Go
  stint submit --kind email --payload '{"to":"gopher"}'`

// submitFlags are the flags of stint submit, as they are typed.
type submitFlags struct {
	client
	queue, tier, key, unique, group string
	after                           []string
	delay, timeout                  time.Duration
	at, deadline                    string
	retries                         int
	retriesSet                      bool // --retries was given
	labels                          map[string]string
	dir, stdin                      string
	env                             []string
	kind, payload                   string
}

func newSubmit(s *streams) *cobra.Command {
	f := submitFlags{client: client{streams: s}}
	cmd := &cobra.Command{
		Use: "submit [flags] [--] command [args]...", Short: "Submit a command to a server",
		Long: submitLong, Example: submitExamples, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			f.retriesSet = cmd.Flags().Changed("retries")
			return f.with(cmd, func(ctx context.Context, server *remote.Server) error {
				return f.submit(ctx, server, args)
			})
		},
	}
	cmd.Flags().SetInterspersed(false) // flags behind the command's name are the command's
	f.flags(cmd.Flags())
	f.register(cmd)
	_ = cmd.RegisterFlagCompletionFunc("tier", cobra.FixedCompletions(tiers(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *submitFlags) flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.queue, "queue", "", "put it into `QUEUE` (default: default)")
	flags.StringVar(&f.tier, "tier", "", "`TIER`: lowest … highest or -3 … 3 (default: normal)")
	flags.StringVar(&f.key, "key", "", "`KEY` that takes turns with others, and may have limits")
	flags.StringVar(&f.group, "group", "", "run after the tasks of `GROUP` that were submitted before, one at a time")
	flags.StringVar(&f.unique, "unique", "", "submit nothing if there is a task with this `NAME`")
	flags.StringArrayVar(&f.after, "after", nil, "start when task `ID` has succeeded; may be given several times")
	secondsVar(flags, &f.delay, "delay", 0, "start after `TIME`")
	flags.StringVar(&f.at, "at", "", "start at `TIME`, as in 2026-11-21T06:00:00Z")
	flags.StringVar(&f.deadline, "deadline", "", "give up if it has not started by `TIME`")
	secondsVar(flags, &f.timeout, "timeout", 0, "end an attempt after `TIME`; it has failed then")
	flags.IntVar(&f.retries, "retries", 0, "try again up to `N` times if it fails (default 2)")
	labelVar(flags, &f.labels, "`NAME=VALUE` to find it by; may be given several times")
	flags.StringVar(&f.dir, "dir", "", "run it in `DIR` (default: here)")
	flags.StringArrayVarP(&f.env, "env", "e", nil, "set `NAME=VALUE` in its environment; NAME alone has the value here")
	flags.StringVar(&f.stdin, "stdin", "", "give it what is in `FILE` as standard input; - is that of this command")
	flags.StringVar(&f.kind, "kind", serve.Kind, "submit a task of `KIND` for other workers, with --payload")
	flags.StringVar(&f.payload, "payload", "", "`JSON` that is the task's payload")
}

func tiers() (names []string) {
	for p := stint.Lowest; p <= stint.Highest; p++ {
		names = append(names, p.String())
	}
	return names
}

// submit sends the task.
func (f *submitFlags) submit(ctx context.Context, server *remote.Server, args []string) error {
	spec, err := f.spec(args)
	if err != nil {
		return err
	}
	if spec.After, err = server.IDs(ctx, f.after); err != nil {
		return fmt.Errorf("--after: %w", err)
	}
	receipts, err := server.Submit(ctx, server.Prepare(spec))
	if err != nil {
		return err
	}
	if f.json {
		return f.print(receipts[0])
	}
	if receipts[0].Existing {
		printTo(f.err, "stint: there is a task with this --unique already\n")
	}
	printTo(f.out, "%s\n", receipts[0].ID)
	return nil
}

// spec is the task that the flags describe. It reports every problem.
func (f *submitFlags) spec(args []string) (queue.Spec, error) {
	spec := queue.Spec{
		Queue: f.queue, Kind: f.kind, Key: f.key, Unique: f.unique, Group: f.group, Timeout: f.timeout, Labels: f.labels,
	}
	var errs [5]error
	if f.tier != "" {
		spec.Tier, errs[0] = stint.ParsePriority(f.tier)
	}
	if f.retriesSet {
		spec.MaxAttempts = f.retries + 1
	}
	spec.RunAt, errs[1] = timeOf("--at", f.at)
	if f.delay > 0 {
		if f.at != "" {
			errs[1] = errors.New("--at and --delay both say when it starts: use one of them")
		}
		spec.RunAt = now().Add(f.delay)
	}
	spec.Deadline, errs[2] = timeOf("--deadline", f.deadline)
	if f.delay < 0 || f.timeout < 0 || f.retries < 0 {
		errs[3] = errors.New("--delay, --timeout and --retries are not negative")
	}
	spec.Payload, errs[4] = f.payloadOf(args)
	return spec, errors.Join(errs[:]...)
}

// timeOf reads a time of day; nothing is the zero time.
func timeOf(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s %q: give a time, as in 2026-11-21T06:00:00Z or 2026-11-21T06:00", flag, text)
}

// payloadOf is the payload of the task.
func (f *submitFlags) payloadOf(args []string) ([]byte, error) {
	if f.kind != serve.Kind {
		switch {
		case len(args) > 0:
			return nil, fmt.Errorf("a task of --kind %s has a --payload and no command", f.kind)
		case f.payload != "" && !json.Valid([]byte(f.payload)):
			return nil, fmt.Errorf("--payload %.40q is no JSON; a text needs quotes of its own", f.payload)
		}
		return []byte(f.payload), nil
	}
	if len(args) == 0 || f.payload != "" {
		return nil, errors.New("give a command; --payload is for tasks of another --kind")
	}
	cmd := isolate.Command{Args: args, Env: f.environment()}
	if run.LooksLikeScript(args) {
		cmd.Args = []string{"sh", "-c", args[0]}
	}
	var errs [3]error
	cmd.Dir, errs[0] = filepath.Abs(f.dir)
	cmd.Stdin, errs[1] = f.input()
	errs[2] = cmd.Validate()
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return json.Marshal(cmd)
}

// environment is what is added to that of the server.
func (f *submitFlags) environment() (env []string) {
	for _, entry := range f.env {
		if value, ok := os.LookupEnv(entry); ok {
			entry += "=" + value
		}
		env = append(env, entry)
	}
	return env
}

func (f *submitFlags) input() ([]byte, error) {
	switch f.stdin {
	case "":
		return nil, nil
	case "-":
		return io.ReadAll(f.in)
	}
	text, err := os.ReadFile(f.stdin)
	if err != nil {
		return nil, fmt.Errorf("--stdin: %w", err)
	}
	return text, nil
}
