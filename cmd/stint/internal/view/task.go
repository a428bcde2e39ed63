// Package view is what the commands of stint show to people: tables, timelines
// and sentences. Programs are shown JSON.
package view

import (
	"encoding/json"
	"fmt"
	"io"
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
)

// table returns a writer of columns, to be flushed.
func table(w io.Writer) *tabwriter.Writer {
	const gap = 2
	return tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
}

// Tasks writes a table of tasks, one on each line, or the next part of one: its head
// is written with the first part.
func Tasks(w io.Writer, tasks []queue.Task, first bool, now time.Time) error {
	t := table(w)
	if first {
		_, _ = fmt.Fprintln(t, "ID\tSTATE\tQUEUE\tTIER\tKEY\tCHANGED\tWORK")
	}
	for i := range tasks {
		task := &tasks[i]
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", remote.Short(task.ID), state(task), plain(task.Queue),
			tier(task.Tier), orDash(plain(task.Key)), Ago(now.Sub(task.Changed)), Work(task))
	}
	return t.Flush()
}

// state is a task's state with what is most worth to know of it.
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

// tier is the name of a tier; most have the normal one, which says nothing.
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

// workMax is how many characters of what a task does stand in a table.
const workMax = 60

// Work is what a task does, on one line: its command, or its kind and payload.
func Work(t *queue.Task) string { return shorten(work(t), workMax) }

func work(t *queue.Task) string {
	var cmd isolate.Command
	if t.Kind == serve.Kind && json.Unmarshal(t.Payload, &cmd) == nil {
		if len(cmd.Args) == 3 && cmd.Args[0] == "sh" && cmd.Args[1] == "-c" {
			return plain(cmd.Args[2])
		}
		return plain(shellquote.Join(cmd.Args))
	}
	return plain(t.Kind + " " + string(t.Payload))
}

// plain makes text of others safe for a terminal: what would move its cursor, or
// worse, is shown as a question mark.
func plain(text string) string {
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

// lines is plain for text of several lines, each of which begins with a prefix.
func lines(text, prefix string) string {
	var out strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		out.WriteString(prefix + strings.TrimRight(plain(strings.ReplaceAll(line, "\t", "    ")), " ") + "\n")
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

// Ago is how long ago something was, or will be.
func Ago(d time.Duration) string {
	switch {
	case d < 0:
		return "in " + Span(-d)
	default:
		return Span(d)
	}
}

// Span is a time, in one or two units.
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
