// Package report turns results into rows, and rows into the table that people
// read and the file that programs read.
package report

import (
	"math"

	"github.com/stintgo/stint/bench/measure"
)

// Row is one figure: a reading of one subject in one case. The
// names of its fields are the format of results.json.
type Row struct {
	Suite   string `json:"suite"`
	Case    string `json:"case"`
	Subject string `json:"subject"`
	// Reading names what was measured.
	Reading string `json:"reading"`
	// One of these three holds the figure, by its unit.
	NsPerOp   *float64 `json:"ns_per_op,omitempty"`
	PerSecond *float64 `json:"per_second,omitempty"`
	Value     *float64 `json:"value,omitempty"`
	Unit      string   `json:"unit"`
	// Allocs and Bytes are heap allocations for each operation, for loops.
	Allocs *float64 `json:"allocs,omitempty"`
	Bytes  *float64 `json:"bytes,omitempty"`
	// Ratio is our figure divided by this subject's: the median of the
	// quotients of the same round. Our own row has none.
	Ratio *float64 `json:"ratio,omitempty"`
	// Close and Far are the ratio of the rounds in which the two cores were close to or far
	// from each other; nil if there was no such round.
	Close *Part `json:"close,omitempty"`
	Far   *Part `json:"far,omitempty"`
	// Goal is what our figure, or Ratio if it is set, is meant to be.
	Goal string `json:"goal,omitempty"`
	Met  *bool  `json:"met,omitempty"`
}

// Part is the ratio of some of the rounds.
type Part struct {
	Ratio  *float64 `json:"ratio"`
	Rounds int      `json:"rounds"`
}

// RowsOf lists what a result says: a row for each subject and reading, and for
// each goal one that carries it. The readings that only goals are about
// (allocations) have a row where there is a goal. seen distinguishes close cores from far ones; see
// [measure.Result.RatioOf].
func RowsOf(suite string, r measure.Result, seen measure.Trips) ([]Row, error) {
	goals, err := r.Case.ParsedGoals()
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, reading := range leading(r.Case) {
		for _, subject := range r.Case.Subjects {
			row := figure(suite, r, subject.Name, reading)
			row.divide(r, seen)
			rows = append(rows, withGoals(row, r, goals)...)
		}
	}
	for _, g := range goals {
		if isLoop(r.Case) && g.Reading != measure.Time {
			row := figure(suite, r, r.Case.Ours, measure.Reading{Name: g.Reading, Unit: r.Case.Unit(g.Reading)})
			rows = append(rows, compared(row, r, g))
		}
	}
	return rows, nil
}

// leading are the readings that have a row for every subject. Allocations of
// loops stand beside the time, in the same row.
func leading(c measure.Case) []measure.Reading {
	if isLoop(c) {
		return []measure.Reading{c.MainReading()}
	}
	return c.Readings
}

func isLoop(c measure.Case) bool { return len(c.Readings) == 0 }

func figure(suite string, r measure.Result, subject string, reading measure.Reading) Row {
	row := Row{Suite: suite, Case: r.Case.Name, Subject: subject, Reading: reading.Name, Unit: reading.Unit}
	value := rounded(r.Median(subject, reading.Name))
	switch reading.Unit {
	case "ns":
		row.NsPerOp = value
	case "/s":
		row.PerSecond = value
	default:
		row.Value = value
	}
	if reading.Name == measure.Time && isLoop(r.Case) {
		row.Allocs = rounded(r.Median(subject, measure.Allocs))
		row.Bytes = rounded(r.Median(subject, measure.Bytes))
	}
	// A quotient of percentages says nothing about either.
	if r.Case.Ours != "" && subject != r.Case.Ours && reading.Unit != "%" {
		row.Ratio = rounded(r.Ratio(r.Case.Ours, subject, reading.Name))
	}
	return row
}

// divide adds the ratio of the rounds of close cores, and of far ones.
func (row *Row) divide(r measure.Result, seen measure.Trips) {
	if row.Ratio == nil {
		return
	}
	part := func(state measure.Cores) *Part {
		ratio, rounds := r.RatioOf(state, seen, r.Case.Ours, row.Subject, row.Reading)
		if rounds == 0 {
			return nil
		}
		return &Part{rounded(ratio), rounds}
	}
	row.Close, row.Far = part(measure.Close), part(measure.Far)
}

// withGoals gives the row once for each goal that is about it, or once without.
func withGoals(row Row, r measure.Result, goals []measure.Goal) []Row {
	var rows []Row
	for _, g := range goals {
		about := g.Against
		if about == "" {
			about = r.Case.Ours
		}
		if g.Reading == row.Reading && about == row.Subject {
			rows = append(rows, compared(row, r, g))
		}
	}
	if rows == nil {
		return []Row{row}
	}
	return rows
}

func compared(row Row, r measure.Result, g measure.Goal) Row {
	_, met := r.Compare(g)
	row.Goal, row.Met = g.Condition(), &met
	return row
}

// rounded keeps four digits: more would only make noise look like knowledge.
// What is not a finite number, JSON cannot hold, and is left out.
func rounded(value float64) *float64 {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	if value != 0 {
		unit := math.Pow(10, math.Floor(math.Log10(math.Abs(value)))-3)
		value = math.Round(value/unit) * unit
		// The product of two inexact numbers has a tail of nines; cut it off.
		value = math.Round(value*1e6) / 1e6
	}
	return &value
}
