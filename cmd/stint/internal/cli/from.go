package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
)

// A batch of stint submit --from is one call, which the server executes as a whole or not
// at all. A batch is full when it has either that many tasks or that many bytes of payloads.
const (
	batchTasks = 1000
	batchBytes = 4 << 20
)

// bulk submits the tasks of many lines.
type bulk struct {
	*submitFlags
	lines    taskLines
	in       *os.File
	name     string // of the input, for messages
	out      *bufio.Writer
	server   *remote.Server
	tasks    int // that are submitted now, with those that existed already
	existing int // the part of tasks that existed already
	// unknown is set when a call has ended without an answer of the server: the server may have
	// accepted its tasks.
	unknown bool
}

// lineReceipt is what --json prints for a task.
type lineReceipt struct {
	Line int `json:"line"`
	queue.Receipt
}

// submitFrom submits a task for each line of --from.
func (f *submitFlags) submitFrom(cmd *cobra.Command, args []string) error {
	b, err := f.newBulk(args)
	if err != nil {
		return err
	}
	defer b.close()
	return f.with(cmd, b.run)
}

// newBulk opens the file of --from. It is called before with catches signals, because the open of a
// pipe may block for ever.
func (f *submitFlags) newBulk(args []string) (*bulk, error) {
	if err := f.checkFrom(args); err != nil {
		return nil, err
	}
	spec, err := f.asked()
	if err != nil {
		return nil, err
	}
	if !f.retriesSet {
		spec.MaxAttempts = 0 // the default depends on the kind
	}
	env, err := f.environment()
	if err != nil {
		return nil, err
	}
	b := &bulk{submitFlags: f, in: f.in, name: "standard input", out: bufio.NewWriter(f.out)}
	b.lines = taskLines{base: spec, delay: f.delay, env: env, dir: f.dir, uniquePrefix: f.uniquePrefix}
	if f.from != "-" {
		b.name = f.from
		if b.in, err = os.Open(f.from); err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
	}
	return b, nil
}

// close closes the file of --from, which was only read.
func (b *bulk) close() {
	if b.in != b.submitFlags.in {
		_ = b.in.Close()
	}
}

// run submits the tasks. If a signal ends it, it prints how many have been submitted.
func (b *bulk) run(ctx context.Context, server *remote.Server) error {
	b.server = server
	if err := b.comesAfter(ctx, server, &b.lines.base); err != nil {
		return err
	}
	if err := b.warnUnknownQueue(ctx, server, b.queue); err != nil {
		return err
	}
	err := b.submitLines(ctx)
	switch {
	case err != nil && ctx.Err() != nil: // with prints no error then
		printTo(b.err, "stint: %s\n", plainText(err))
	case err == nil && b.existing > 0:
		printTo(b.err, "stint: %d of %s existed already, with the same unique name\n",
			b.existing, view.Count(b.tasks, "task"))
	}
	return err
}

// submitLines submits the lines until one is refused or ctx ends.
func (b *bulk) submitLines(ctx context.Context) error {
	lines, stop := context.WithCancel(ctx)
	defer stop()
	for batch := range inBatches(lines, b.lines.read(lines, b.in)) {
		if err := b.submit(ctx, batch); err != nil {
			return b.stopped(err)
		}
	}
	if ctx.Err() != nil {
		return b.stopped(context.Cause(ctx))
	}
	return nil
}

// checkFrom refuses arguments for a single command together with --from.
func (f *submitFlags) checkFrom(args []string) error {
	switch {
	case len(args) > 0:
		return fmt.Errorf("--from reads the commands, so leave out %q", args[0])
	case f.unique != "":
		return errors.New("--unique is for one task: with --from, give --unique-prefix")
	case f.uniqueFor != 0 && f.uniquePrefix == "":
		return errors.New("--unique-for says how long the names of --unique-prefix are kept: give that, too")
	case f.stdin != "" || f.payload != "":
		return errors.New("--stdin and --payload are for one task: with --from, lines of JSON may have them")
	}
	return nil
}

// submit submits a batch. If the server refuses it, its tasks are submitted in smaller
// batches, so that the error is that of one line, and all lines before it are submitted.
func (b *bulk) submit(ctx context.Context, batch []taskLine) error {
	for i := range batch {
		if batch[i].err != nil {
			if err := b.submit(ctx, batch[:i]); err != nil {
				return err
			}
			return fmt.Errorf("%s, line %d: %w", b.name, batch[i].no, batch[i].err)
		}
	}
	if len(batch) == 0 {
		return nil
	}
	tasks := make([]queue.NewTask, len(batch))
	for i := range batch {
		tasks[i] = b.server.Prepare(batch[i].spec)
	}
	receipts, err := b.server.Submit(ctx, tasks...)
	switch {
	case err == nil:
		return b.print(batch, receipts)
	case refused(err) && len(batch) > 1:
		half := len(batch) / 2
		if err := b.submit(ctx, batch[:half]); err != nil {
			return err
		}
		return b.submit(ctx, batch[half:])
	}
	b.unknown = !refused(err)
	if len(batch) > 1 {
		return fmt.Errorf("%s, lines %d to %d: %w", b.name, batch[0].no, batch[len(batch)-1].no, err)
	}
	return fmt.Errorf("%s, line %d: %w", b.name, batch[0].no, &onlyTaskError{err})
}

// refused reports whether the server refused a call as a whole because of one of its
// tasks.
func refused(err error) bool {
	return errors.Is(err, queue.ErrInvalid) || errors.Is(err, queue.ErrTooLarge) || errors.Is(err, queue.ErrFull)
}

// print prints the receipts of durable tasks.
func (b *bulk) print(batch []taskLine, receipts []queue.Receipt) error {
	for i, r := range receipts {
		b.tasks++
		if r.Existing {
			b.existing++
		}
		if b.json {
			if err := printJSON(b.out, lineReceipt{batch[i].no, r}); err != nil {
				return err
			}
			continue
		}
		printTo(b.out, "%s\n", r.ID)
	}
	return b.out.Flush()
}

// stopped returns the error of the line at which submitting stopped.
func (b *bulk) stopped(err error) error {
	again := "give --unique-prefix to submit the same lines again safely"
	if b.uniquePrefix != "" {
		again = "the same command continues there"
	}
	switch {
	case b.unknown:
		return fmt.Errorf("%w (submitted: %s of earlier lines, all or none of these lines, and no later line; %s)",
			err, view.Count(b.tasks, "task"), again)
	case b.tasks == 0:
		return fmt.Errorf("%w (no task has been submitted)", err)
	}
	return fmt.Errorf("%w (submitted: %s before it, and none after it; %s)", err, view.Count(b.tasks, "task"), again)
}

// uniqueName returns the unique name of the task of a line.
func uniqueName(prefix string, line int) string { return prefix + "-" + strconv.Itoa(line) }
