package cli

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/stintgo/stint/cmd/stint/internal/bench"
)

const benchLong = `Measure the scheduler, the limiter and stint run on this machine.

It takes a few seconds. Other programs on this machine affect the figures: idle machines
give better ones. Comparisons with other software are in the source's bench directory.`

func newBench(s *streams) *cobra.Command {
	var asJSON bool
	each := 500 * time.Millisecond
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure this machine", Long: benchLong, Args: nothingElse,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var rows []bench.Row
			for _, c := range bench.Cases() {
				found, err := c.Measure(cmd.Context(), each)
				if err != nil {
					return fmt.Errorf("%s: %w", c.Name(), err)
				}
				rows = append(rows, found...)
				if !asJSON {
					printRows(s, found)
				}
			}
			if asJSON {
				return json.NewEncoder(s.out).Encode(rows)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().DurationVar(&each, "time", each, "spend about `TIME` on each measurement")
	return cmd
}

// printRows prints each measurement as soon as it is done: all of them take seconds.
func printRows(s *streams, rows []bench.Row) {
	for _, row := range rows {
		s.printf("%-46s %12s %-4s %s\n", row.Name, figure(row.Value), row.Unit, row.Note)
	}
}

// figure formats a value with as many digits as its precision justifies.
func figure(value float64) string {
	if value < 1000 && value > -1000 {
		return fmt.Sprintf("%.2f", value)
	}
	return fmt.Sprintf("%.0f", value)
}
