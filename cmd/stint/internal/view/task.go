// Package view formats the output of the commands of stint: tables, timelines and
// sentences for people, JSON for programs.
package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/stintgo/stint"
	"github.com/stintgo/stint/cmd/stint/internal/remote"
	"github.com/stintgo/stint/cmd/stint/internal/serve"
	"github.com/stintgo/stint/cmd/stint/internal/shellquote"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/queue/isolate"
	"github.com/stintgo/stint/transfer"
)

// table returns a writer of columns, which the caller must flush.
func table(w io.Writer) *tabwriter.Writer {
	const gap = 2
	return tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
}

// Tasks prints a table of tasks, one per line, or the next part of one: the heading is
// printed with the first part. Lines have at most the given number of columns; 0 is no
// limit. The work of a task is the last column, so it is cut first.
func Tasks(w io.Writer, tasks []queue.Task, first bool, now time.Time, columns int) error {
	var text bytes.Buffer
	t := table(&text)
	if first {
		_, _ = fmt.Fprintln(t, "ID\tSTATE\tEXIT\tTOOK\tQUEUE\tTIER\tKEY\tLABELS\tCHANGED\tWORK")
	}
	for i := range tasks {
		task := &tasks[i]
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", remote.Short(task.ID), state(task), exit(task),
			took(task, now), Plain(task.Queue), tier(task.Tier), orDash(Plain(task.Key)), labels(task),
			since(task.Changed, now), Work(task))
	}
	_ = t.Flush() // into memory
	for line := range strings.Lines(text.String()) {
		if columns > 0 {
			line = shorten(strings.TrimSuffix(line, "\n"), columns) + "\n"
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// exit returns the exit status of the last attempt of a command, or - while a further attempt runs: the
// duration in the same row is then that of the further attempt.
func exit(t *queue.Task) string {
	if status, ok := isolate.ExitOf(t); ok && t.Kind == serve.Kind && t.State != queue.Running {
		return strconv.Itoa(status.Code())
	}
	return "-"
}

// took returns how long the last attempt of a task ran, or has been running.
func took(t *queue.Task, now time.Time) string {
	for i, step := range slices.Backward(t.Steps) {
		switch {
		case step.On != queue.OnClaim:
		case i+1 < len(t.Steps):
			return Span(t.Steps[i+1].At.Sub(step.At))
		default:
			return Span(now.Sub(step.At))
		}
	}
	return "-"
}

// labelsMax is how many characters of labels a table shows.
const labelsMax = 24

// labels returns a task's labels on one line.
func labels(t *queue.Task) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
		all = append(all, name+"="+t.Labels[name])
	}
	return orDash(shorten(Plain(strings.Join(all, ",")), labelsMax))
}

// state returns a task's state with its most important detail.
func state(t *queue.Task) string {
	switch {
	case t.Order != 0:
		return fmt.Sprintf("%s (to %s)", t.State, t.Order)
	case t.State == queue.Held && len(t.Holds) > 0:
		return fmt.Sprintf("held: %s", t.Holds[0].Code)
	case t.State == queue.Running && t.Progress.Total > 0:
		return fmt.Sprintf("running %d %%", t.Progress.Done*100/t.Progress.Total)
	}
	return t.State.String()
}

// tier returns the name of a tier; the normal one, which most tasks have, is omitted.
func tier(p stint.Priority) string {
	if p == stint.Normal {
		return "-"
	}
	return p.String()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// workMax is how many characters of a task's work a table shows.
const workMax = 60

// Work returns what a task does on one line: its command, the file of an upload and its
// server, or its kind and payload.
func Work(t *queue.Task) string { return shorten(work(t), workMax) }

func work(t *queue.Task) string {
	if cmd, ok := commandOf(t); ok {
		if text, ok := script(&cmd); ok {
			return Plain(text)
		}
		return Plain(shellquote.Join(cmd.Args))
	}
	shown := hideSecrets(*t)
	var u transfer.Upload
	if t.Kind == string(transfer.Kind) && json.Unmarshal(shown.Payload, &u) == nil {
		return Plain(t.Kind + " " + u.Path + " to " + withoutPassword(u.To))
	}
	return Plain(t.Kind + " " + string(shown.Payload))
}

// Plain makes text of tasks and servers safe for a terminal: it replaces control characters, which
// could move the cursor or change settings, by question marks.
func Plain(text string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsGraphic(r):
			return '?'
		}
		return r
	}, text))
}

// lines is [Plain] for text of several lines; it puts the prefix before each.
func lines(text, prefix string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		out.WriteString(prefix + strings.TrimRight(Plain(strings.ReplaceAll(line, "\t", "    ")), " ") + "\n")
	}
	return out.String()
}

func shorten(text string, most int) string {
	r := []rune(text)
	if len(r) <= most {
		return text
	}
	return string(r[:most-1]) + "…"
}

// Count returns a number of things in words, as in "1 task" and "2 tasks".
func Count[N int | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Ago returns how long ago something was, or in what time it will be.
func Ago(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + Span(-d)
	default:
		return Span(d)
	}
}

// since returns how long ago something was, or a dash if the time is unknown.
func since(at, now time.Time) string {
	if at.IsZero() {
		return "-"
	}
	return Ago(now.Sub(at))
}

// Span formats a duration in one or two units.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	case d < day:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
}
