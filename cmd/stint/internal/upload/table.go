package upload

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/stintgo/stint/cmd/stint/internal/progress"
	"github.com/stintgo/stint/cmd/stint/internal/view"
	"github.com/stintgo/stint/queue"
	"github.com/stintgo/stint/transfer"
)

// Row is an upload in a table.
type Row struct{ id, state, share, size, rate, left, attempt, name string }

// RowOf returns the row of an upload.
func RowOf(t transfer.Transfer) Row {
	r := Row{
		id: t.ID.String(), state: t.State.String(), share: share(t.Done, t.Size), size: Size(t.Size), rate: "-", left: "-",
		attempt: fmt.Sprint(t.Attempt), name: view.Plain(t.Name),
	}
	if t.State == queue.Running {
		r.rate = rate(t.Rate)
	}
	if t.ETA > 0 {
		r.left = progress.ClockText(t.ETA)
	}
	return r
}

// Table writes uploads as a table.
func Table(w io.Writer, rows []Row) error {
	const padding = 2
	out := tabwriter.NewWriter(w, 0, 0, padding, ' ', 0)
	_, _ = fmt.Fprintln(out, "ID\tSTATE\tDONE\tSIZE\tRATE\tLEFT\tATTEMPT\tNAME") // Flush returns the error
	for _, r := range rows {
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.id, r.state, r.share, r.size, r.rate, r.left,
			r.attempt, r.name)
	}
	return out.Flush()
}
