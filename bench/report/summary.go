package report

import (
	"cmp"
	"fmt"
	"strings"
)

// Summary returns the rows of one case as plain lines, to be printed during the run.
func Summary(rows []Row) string {
	var b strings.Builder
	for i, row := range rows {
		if i == 0 {
			fmt.Fprintf(&b, "%s: %s\n", row.Suite, row.Case)
		}
		ratio := ""
		if row.Ratio != nil {
			ratio = number(row.Ratio) + "×"
		}
		states := ""
		if row.Close != nil || row.Far != nil {
			states = fmt.Sprintf("close %s, far %s ", cmp.Or(row.Close.text(), "-"), cmp.Or(row.Far.text(), "-"))
		}
		text := fmt.Sprintf("  %-32s %-22s %12s %8s  %s%s %s",
			row.Subject, row.Reading, figureText(row), ratio, states, row.Goal, verdict(row))
		b.WriteString(strings.TrimRight(text, " ") + "\n")
	}
	return b.String()
}
