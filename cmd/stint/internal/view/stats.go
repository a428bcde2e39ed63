package view

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stintgo/stint/queue"
)

// Stats prints the tasks of each queue, its limits, and the workers.
func Stats(w io.Writer, s *queue.Stats, now time.Time) error {
	out := table(w)
	_, _ = fmt.Fprint(out, "QUEUE")
	for _, state := range queue.States() {
		_, _ = fmt.Fprint(out, "\t", strings.ToUpper(state.String()))
	}
	_, _ = fmt.Fprintln(out, "\tOLDEST WAITS")
	for _, name := range slices.Sorted(maps.Keys(s.Queues)) {
		counts := s.Queues[name]
		_, _ = fmt.Fprint(out, Plain(name))
		for _, state := range queue.States() {
			_, _ = fmt.Fprintf(out, "\t%d", counts.States[state])
		}
		_, _ = fmt.Fprintf(out, "\t%s\n", since(counts.Oldest, now))
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if s.Refuses != "" {
		_, _ = fmt.Fprintf(w, "\ntasks are refused: %s\n", Plain(s.Refuses))
	}
	pauses(w, s, now)
	if err := limitsInForce(w, s, now); err != nil {
		return err
	}
	return workers(w, s.Workers, now)
}

// pauses prints which queues are paused: nothing else in the table says why their tasks
// do not start.
func pauses(w io.Writer, s *queue.Stats, now time.Time) {
	first := true
	for _, name := range slices.Sorted(maps.Keys(s.Queues)) {
		p := s.Queues[name].Limits.Paused
		if p == nil {
			continue
		}
		if first {
			_, _ = fmt.Fprintln(w)
		}
		first = false
		_, _ = fmt.Fprintf(w, "queue %s is paused", Plain(name))
		if !p.Since.IsZero() {
			_, _ = fmt.Fprintf(w, " for %s", since(p.Since, now))
		}
		if p.By != "" {
			_, _ = fmt.Fprintf(w, " by %s", Plain(p.By))
		}
		if p.Reason != "" {
			_, _ = fmt.Fprintf(w, ": %s", Plain(p.Reason))
		}
		_, _ = fmt.Fprintln(w)
	}
}

// limitsInForce prints the limits of queues, if there are any.
func limitsInForce(w io.Writer, s *queue.Stats, now time.Time) error {
	limits := limitsOf("", "", &queue.Layers{Operator: s.Total.Limits}, s)
	for _, name := range slices.Sorted(maps.Keys(s.Queues)) {
		counts := s.Queues[name]
		limits = append(limits, limitsOf(name, "", &queue.Layers{Operator: counts.Limits}, s)...)
	}
	if len(limits) == 0 {
		return nil
	}
	_, _ = fmt.Fprintln(w)
	return LimitTable(w, limits, now)
}

func workers(w io.Writer, all []queue.Worker, now time.Time) error {
	out := table(w)
	_, _ = fmt.Fprintln(out, "\nWORKER\tSLOTS\tSINCE\tWORKS ON")
	for i := range all {
		var work []string
		for _, name := range slices.Sorted(maps.Keys(all[i].Kinds)) {
			work = append(work, name+": "+strings.Join(all[i].Kinds[name], ", "))
		}
		_, _ = fmt.Fprintf(out, "%s\t%d\t%s\t%s\n",
			Plain(all[i].Name), all[i].Slots, since(all[i].Since, now), Plain(strings.Join(work, "; ")))
	}
	return out.Flush()
}
