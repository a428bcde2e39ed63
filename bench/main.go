// Command bench measures Stint side by side with its peers and writes what it
// finds to RESULTS.md and results.json.
//
//	go run .                    all suites but scale, for figures: keep the machine quiet
//	go run . -suite core,js     these suites; the others keep their last figures
//	go run . -suite core -case contended
//	                            the cases with that in their names; writes nothing
//	go run . -suite scale -pending 1000000
//	                            a million pending tasks instead of ten
//	go run . -once              one tiny pass, for correctness; writes nothing
//
// docs/design/performance.md has the method.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/stintgo/stint/bench/measure"
	"github.com/stintgo/stint/bench/report"
	"github.com/stintgo/stint/bench/scale"
	"github.com/stintgo/stint/bench/shared"
)

func main() {
	shared.Worker() // does not return in the processes that the suite shared starts
	chosen := flag.String("suite", "",
		fmt.Sprintf("suites to run, separated by commas, of %s; without it %s",
			strings.Join(suiteNames(), ", "), strings.Join(usual(false), ", ")))
	rounds := flag.Int("rounds", 5, "turns that each subject has")
	out := flag.String("out", ".", "directory for RESULTS.md and results.json")
	only := flag.String("case", "", "run only cases whose names contain this; writes nothing")
	pending := flag.Int("pending", scale.Default, "pending tasks of the suite scale")
	once := flag.Bool("once", false, "one tiny pass for correctness; writes nothing")
	flag.Parse()

	runner := measure.Full(*rounds)
	if *once {
		runner = measure.Once()
		*pending = min(*pending, scale.Tiny)
	}
	selection := selection{suites: usual(*once), only: *only, pending: *pending}
	if *chosen != "" {
		selection.suites = strings.Split(*chosen, ",")
	}
	if err := bench(runner, selection, *out); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// selection is what to run.
type selection struct {
	suites  []string
	only    string // cases whose names contain this; empty for all
	pending int    // tasks of the suite scale
}

// bench runs suites and, if it is a full run of all their cases, puts their
// rows into the report in dir. What a suite has found is written before the
// next one starts.
func bench(runner measure.Runner, sel selection, dir string) error {
	if runner.Rounds < 1 {
		return fmt.Errorf("-rounds is %d, must be at least 1", runner.Rounds)
	}
	chosen, err := find(sel.suites)
	if err != nil {
		return err
	}
	book, err := report.Read(dir)
	if err != nil {
		return err
	}
	peers, err := peerVersions()
	if err != nil {
		return err
	}
	book.Peers = peers
	machine := report.ThisMachine()
	for _, s := range chosen {
		rows, trips, err := s.run(runner, sel, book.Seen[machine.CPU])
		if err != nil {
			return fmt.Errorf("suite %s: %w", s.name, err)
		}
		book.Replace(s.name, rows, report.Run{Machine: machine, Rounds: runner.Rounds, Trips: trips})
		if runner.Once || sel.only != "" {
			continue
		}
		if err := book.Write(dir); err != nil {
			return err
		}
	}
	return nil
}

// run measures the cases of a suite that are selected, one by one, and says how
// each went. seen are the trips of earlier runs.
func (s suite) run(
	runner measure.Runner, sel selection, seen measure.Trips,
) (rows []report.Row, trips measure.Trips, err error) {
	dir, err := os.MkdirTemp("", "stint-bench-")
	if err != nil {
		return nil, trips, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cases, err := s.cases(setup{dir, sel.pending})
	if err != nil {
		return nil, trips, err
	}
	var results []measure.Result
	for _, c := range cases {
		if !strings.Contains(c.Name, sel.only) {
			continue
		}
		result, err := runner.Run(c)
		if err != nil {
			return nil, trips, err
		}
		results = append(results, result)
		trips = trips.With(result.Trips())
		if err := s.print(runner, result, seen.With(trips)); err != nil {
			return nil, trips, err
		}
		// The next case must not pay for the garbage of this one.
		runtime.GC()
	}
	for _, result := range results { // only now all trips are known
		found, err := report.RowsOf(s.name, result, seen.With(trips))
		if err != nil {
			return nil, trips, err
		}
		rows = append(rows, found...)
	}
	return rows, trips, nil
}

// print prints the result of a case.
func (s suite) print(runner measure.Runner, result measure.Result, seen measure.Trips) error {
	if runner.Once {
		fmt.Printf("ok  %s: %s\n", s.name, result.Case.Name) // its figures mean nothing
		return nil
	}
	found, err := report.RowsOf(s.name, result, seen)
	if err == nil {
		fmt.Print(report.Summary(found))
	}
	return err
}
