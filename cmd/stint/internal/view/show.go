package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
)

// clockLayout is the format of times, which are local.
const clockLayout = "2006-01-02 15:04:05.000"

// Show prints all that is known of a task: what was asked, its state, and its history. It
// prints the values of variables, which may be secrets, and passwords only if reveal is set.
func Show(w io.Writer, t *queue.Task, now time.Time, reveal bool) error {
	if !reveal {
		shown := hideSecrets(*t)
		t = &shown
	}
	out := table(w)
	field := func(name, format string, args ...any) { _, _ = fmt.Fprintf(out, name+"\t"+format+"\n", args...) }
	optional := func(name, text string) {
		if text != "" {
			field(name, "%s", Plain(text))
		}
	}
	field("task", "%s", t.ID)
	switch span := since(t.Changed, now); {
	case t.Changed.IsZero():
		field("state", "%s", state(t))
	case t.State.Finished():
		field("state", "%s %s ago", state(t), span)
	default:
		field("state", "%s, for %s", state(t), span)
	}
	for _, hold := range t.Holds {
		field("", "held by %s %s", hold.Code, Plain(hold.What))
	}
	field("queue", "%s", Plain(t.Queue))
	field("kind", "%s", Plain(t.Kind))
	asked(t, field, optional, reveal)
	if t.State == queue.Running {
		field("worker", "%s, lease until %s", Plain(t.Lease.Worker), clock(t.Lease.Until))
	}
	if p := t.Progress; p != (queue.Progress{}) {
		field("progress", "%d of %d %s", p.Done, p.Total, Plain(p.Note))
	}
	field("failures", "%s", outOf(t.Failures, t.MaxAttempts))
	if t.Crashes > 0 {
		field("crashes", "%s in a row", outOf(t.Crashes, t.MaxCrashes))
	}
	if exit, ok := isolate.ExitOf(t); ok && t.Kind == serve.Kind {
		field("exit status", "%d, %s of output", exit.Code(), Count(exit.Output, "byte"))
		optional("", exit.Lost)
	} else {
		optional("result", shorten(string(t.Result), workMax))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if t.Error != "" {
		_, _ = fmt.Fprintf(w, "error\n%s", lines(t.Error, "  "))
	}
	return Timeline(w, t)
}

// asked prints the options that the task was submitted with, without defaults.
func asked(
	t *queue.Task, field func(name, format string, args ...any), optional func(name, text string), reveal bool,
) {
	if cmd, ok := commandOf(t); ok {
		field("command", "%s", work(t))
		optional("directory", cmd.Dir)
		optional("environment", strings.Join(variables(&cmd, reveal), " "))
		if n := len(cmd.Stdin); n > 0 {
			field("stdin", "%s", Count(n, "byte"))
		}
	} else {
		optional("payload", shorten(string(t.Payload), 10*workMax))
	}
	if t.Tier != 0 {
		field("tier", "%s", t.Tier)
	}
	optional("key", t.Key)
	optional("unique", t.Unique)
	optional("group", t.Group)
	for _, id := range t.After {
		field("after", "%s", id)
	}
	for _, id := range t.AfterAny {
		field("after any end of", "%s", id)
	}
	if !t.Batch.IsZero() {
		field("batch", "%s", t.Batch)
	}
	if !t.AfterBatch.IsZero() {
		field("after batch", "%s", t.AfterBatch)
	}
	if !t.RunAt.IsZero() {
		field("not before", "%s", clock(t.RunAt))
	}
	if !t.Deadline.IsZero() {
		field("starts before", "%s", clock(t.Deadline))
	}
	if t.Timeout > 0 {
		field("timeout", "%s", t.Timeout)
	}
	for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
		field("label", "%s=%s", Plain(name), Plain(t.Labels[name]))
	}
}

// outOf returns a number, with its limit if the task has one of its own.
func outOf(n, limit int) string {
	if limit == 0 {
		return strconv.Itoa(n)
	}
	return fmt.Sprintf("%d of %d", n, limit)
}

// Timeline prints the history of a task, one step per line. The last column is nearly whole,
// since a reason ends with what to do.
func Timeline(w io.Writer, t *queue.Task) error {
	out := table(w)
	_, _ = fmt.Fprintln(out, "\nTIME\tAFTER\tWHAT\tSTATE\tBY\t")
	last := t.Submitted
	for _, s := range t.Steps {
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\n",
			clock(s.At), Span(s.At.Sub(last)), s.On, s.To, orDash(Plain(s.By)), shorten(firstLine(s.Detail), 10*workMax))
		last = s.At
	}
	return out.Flush()
}

func firstLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return Plain(first)
}

func clock(t time.Time) string { return t.Local().Format(clockLayout) }
