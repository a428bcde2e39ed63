package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/stintgo/stint/bench/measure"
)

// The files that a report is written to.
const (
	jsonName     = "results.json"
	markdownName = "RESULTS.md"
)

// Report is all that is known: the last run of every suite.
type Report struct {
	Machine Machine `json:"machine"`
	// Peers are the versions of the packages that are measured against.
	Peers map[string]string `json:"peers"`
	// Rounds is how many turns each subject had.
	Rounds int `json:"rounds"`
	// Trips has, by suite, how long a cache line took from one core to the other and back.
	Trips map[string]measure.Trips `json:"trips,omitempty"`
	// Seen are the trips of all runs on this kind of processor.
	Seen measure.Trips `json:"trips_seen,omitzero"`
	Rows []Row         `json:"rows"`
}

// Read gives the report in dir, or an empty one if there is none.
func Read(dir string) (Report, error) {
	var r Report
	text, err := os.ReadFile(filepath.Join(dir, jsonName))
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read results: %w", err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s is not a report; remove it and run again: %w", jsonName, err)
	}
	return r, nil
}

// On notes the machine that is measured. What was seen of another kind of processor says
// nothing about this one.
func (r *Report) On(m Machine) {
	if r.Machine.CPU != m.CPU {
		r.Seen = measure.Trips{}
	}
	r.Machine = m
}

// Replace puts the rows of one suite, and the trips of its run, in the place of those that
// it had.
func (r *Report) Replace(suite string, rows []Row, trips measure.Trips) {
	if r.Trips == nil {
		r.Trips = make(map[string]measure.Trips)
	}
	if r.Trips[suite] = trips; trips.Shortest == 0 {
		delete(r.Trips, suite)
	}
	at := slices.IndexFunc(r.Rows, func(row Row) bool { return row.Suite == suite })
	r.Rows = slices.DeleteFunc(r.Rows, func(row Row) bool { return row.Suite == suite })
	if at < 0 {
		at = len(r.Rows)
	}
	r.Rows = slices.Insert(r.Rows, min(at, len(r.Rows)), rows...)
}

// Write puts the report into dir, for programs and for people. The second is
// made from the first, so they cannot disagree.
func (r Report) Write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, jsonName), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, markdownName), []byte(r.Markdown()), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}
