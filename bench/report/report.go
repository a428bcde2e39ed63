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
	// Peers are the versions of the packages that are measured against.
	Peers map[string]string `json:"peers"`
	// Runs has the last run of each suite.
	Runs map[string]Run `json:"runs"`
	// Seen has, by processor, the trips of all runs.
	Seen map[string]measure.Trips `json:"trips_seen"`
	Rows []Row                    `json:"rows"`
}

// Run is how a suite was measured. Suites may be measured on different machines.
type Run struct {
	Machine Machine       `json:"machine"`
	Rounds  int           `json:"rounds"`         // turns of each subject
	Trips   measure.Trips `json:"trips,omitzero"` // of a cache line from one core to the other and back
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

// Replace replaces the rows of one suite and its run.
func (r *Report) Replace(suite string, rows []Row, run Run) {
	if r.Runs == nil {
		r.Runs, r.Seen = make(map[string]Run), make(map[string]measure.Trips)
	}
	r.Runs[suite] = run
	if seen := r.Seen[run.Machine.CPU].With(run.Trips); seen.Shortest > 0 {
		r.Seen[run.Machine.CPU] = seen
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
