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

// Stats writes what there is in each queue, and who works.
func Stats(w io.Writer, s *queue.Stats, now time.Time) error {
	out := table(w)
	_, _ = fmt.Fprint(out, "QUEUE")
	for _, state := range queue.States() {
		_, _ = fmt.Fprint(out, "\t", strings.ToUpper(state.String()))
	}
	_, _ = fmt.Fprintln(out, "\tOLDEST WAITS")
	for _, name := range slices.Sorted(maps.Keys(s.Queues)) {
		counts := s.Queues[name]
		_, _ = fmt.Fprint(out, plain(name))
		for _, state := range queue.States() {
			_, _ = fmt.Fprintf(out, "\t%d", counts.States[state])
		}
		oldest := "-"
		if !counts.Oldest.IsZero() {
			oldest = Span(now.Sub(counts.Oldest))
		}
		_, _ = fmt.Fprintf(out, "\t%s\n", oldest)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return workers(w, s.Workers, now)
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
			plain(all[i].Name), all[i].Slots, Span(now.Sub(all[i].Since)), plain(strings.Join(work, "; ")))
	}
	return out.Flush()
}
