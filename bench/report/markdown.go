package report

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Markdown is the report for people. A goal that was missed is in it as missed.
func (r Report) Markdown() string {
	var b strings.Builder
	r.preface(&b)
	suite := ""
	for i, row := range r.Rows {
		if row.Suite != suite {
			suite = row.Suite
			fmt.Fprintf(&b, "\n## %s\n\n", suite)
			b.WriteString(r.Runs[suite].text() + "\n\n")
			b.WriteString("| work | subject | figure | allocs | bytes | stint ÷ subject | cores close | cores far | goal | |\n")
			b.WriteString("|---|---|---:|---:|---:|---:|---:|---:|---|---|\n")
		}
		above := Row{}
		if i > 0 {
			above = r.Rows[i-1]
		}
		b.WriteString(line(row, title(above, row)))
	}
	return b.String()
}

func (r Report) preface(b *strings.Builder) {
	met, missed := r.tally()
	b.WriteString("# Results\n\n")
	b.WriteString("Made by `make bench`; not edited by hand. How it is measured: [docs/design/performance.md]" +
		"(../docs/design/performance.md).\n")
	b.WriteString("Subjects take turns in one process. A ratio is the median of same-round ratios:\n" +
		"below 1 is better for times and bytes, above 1 for rates. The ratio of the rounds in which the two cores\n" +
		"were close to each other stands beside that of the rounds in which they were far from each other, with the\n" +
		"number of rounds: a cache line took up to 1.6 times as long as the shortest time that was ever seen on this\n" +
		"kind of processor, or from 2.2 times on.\n\n")
	b.WriteString("Suites may have been measured on different machines: each names its own.\n\n")
	fmt.Fprintf(b, "**%d of %d goals met.**\n", met, met+len(missed))
	if len(missed) > 0 {
		b.WriteString("\nMissed:\n\n")
	}
	for _, row := range missed {
		fmt.Fprintf(b, "- %s, %s: %s %s (goal %s)\n", row.Case, row.Subject, row.Reading, goalFigure(row), row.Goal)
	}
	b.WriteString("\nPeers: ")
	var peers []string
	for _, path := range slices.Sorted(maps.Keys(r.Peers)) {
		peers = append(peers, path+" "+r.Peers[path])
	}
	b.WriteString(strings.Join(peers, ", ") + ".\n")
}

// text is the machine, the rounds, and the distance of the cores if it was measured.
func (run Run) text() string {
	m := run.Machine
	text := fmt.Sprintf("%s, %d cores, %s, %s/%s; %d rounds.", m.CPU, m.Cores, m.Go, m.OS, m.Arch, run.Rounds)
	if trips := run.Trips; trips.Shortest > 0 {
		text += fmt.Sprintf(" A cache line went from one core to the other and back in %s to %s.",
			duration(trips.Shortest), duration(trips.Longest))
	}
	return text
}

func (r Report) tally() (met int, missed []Row) {
	for _, row := range r.Rows {
		switch {
		case row.Met == nil:
		case *row.Met:
			met++
		default:
			missed = append(missed, row)
		}
	}
	return met, missed
}

// goalFigure is the number that the goal of a row is about.
func goalFigure(row Row) string {
	if row.Ratio != nil {
		return number(row.Ratio) + "×"
	}
	return figureText(row)
}

// title says what a row is about, as far as the row above does not.
func title(above, row Row) string {
	sameCase := above.Suite == row.Suite && above.Case == row.Case
	switch {
	case sameCase && above.Reading == row.Reading:
		return ""
	case sameCase:
		return "… " + row.Reading
	case row.Reading == "time" || row.Reading == "rate": // the figure's unit says so
		return row.Case
	default:
		return row.Case + ": " + row.Reading
	}
}

func line(row Row, work string) string {
	ratio := ""
	if row.Ratio != nil {
		ratio = number(row.Ratio)
	}
	cells := []string{
		work, row.Subject, figureText(row), number(row.Allocs), number(row.Bytes),
		ratio, row.Close.text(), row.Far.text(), row.Goal, verdict(row),
	}
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// text is the ratio and, in brackets, the number of its rounds.
func (p *Part) text() string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf("%s (%d)", number(p.Ratio), p.Rounds)
}

func verdict(row Row) string {
	switch {
	case row.Met == nil:
		return ""
	case *row.Met:
		return "met"
	default:
		return "**missed**"
	}
}

// figureText gives a figure with its unit, in the size that reads best.
func figureText(row Row) string {
	switch {
	case row.NsPerOp != nil:
		return duration(*row.NsPerOp)
	case row.PerSecond != nil:
		return perSecond(*row.PerSecond)
	case row.Value != nil && row.Unit == "B":
		return size(*row.Value)
	case row.Value != nil:
		return strings.TrimSpace(number(row.Value) + " " + row.Unit)
	default:
		return ""
	}
}

func duration(ns float64) string {
	switch {
	case ns >= 1e6:
		return number(rounded(ns/1e6)) + " ms"
	case ns >= 1e4:
		return number(rounded(ns/1e3)) + " µs"
	default:
		return number(&ns) + " ns"
	}
}

func perSecond(n float64) string {
	switch {
	case n >= 1e6:
		return number(rounded(n/1e6)) + " M/s"
	case n >= 1e4:
		return number(rounded(n/1e3)) + " k/s"
	default:
		return number(&n) + " /s"
	}
}

func size(n float64) string {
	if n >= 1<<20 {
		return number(rounded(n/(1<<20))) + " MiB"
	}
	return number(&n) + " B"
}

// number is a figure to three digits, without an exponent, or nothing.
func number(value *float64) string {
	if value == nil {
		return ""
	}
	v := *value
	switch {
	case v != 0 && v < 10:
		return strings.TrimRight(strings.TrimRight(strconv.FormatFloat(v, 'f', 2, 64), "0"), ".")
	case v < 100:
		return strings.TrimSuffix(strconv.FormatFloat(v, 'f', 1, 64), ".0")
	default:
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
}
