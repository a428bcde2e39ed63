package main

import (
	"fmt"
	"strings"

	"github.com/stintgo/stint/bench/backlog"
	"github.com/stintgo/stint/bench/core"
	"github.com/stintgo/stint/bench/csync"
	"github.com/stintgo/stint/bench/js"
	"github.com/stintgo/stint/bench/limiter"
	"github.com/stintgo/stint/bench/measure"
	"github.com/stintgo/stint/bench/run"
)

// suite is a number of cases that are run together.
type suite struct {
	name string
	// cases gets a directory of its own, which is removed after the run.
	cases func(dir string) ([]measure.Case, error)
}

// suites are all there are, in the order in which they are run and reported.
func suites() []suite {
	inProcess := func(cases func() []measure.Case) func(string) ([]measure.Case, error) {
		return func(string) ([]measure.Case, error) { return cases(), nil }
	}
	return []suite{
		{"core", inProcess(core.Cases)},
		{"backlog", inProcess(backlog.Cases)},
		{"limiter", inProcess(limiter.Cases)},
		{"csync", inProcess(csync.Cases)},
		{"run", func(dir string) ([]measure.Case, error) {
			programs, err := run.Prepare(dir)
			if err != nil {
				return nil, err
			}
			return programs.Cases(), nil
		}},
		{"js", func(dir string) ([]measure.Case, error) {
			packages, err := js.Prepare(dir)
			if err != nil {
				return nil, err
			}
			return packages.Cases(), nil
		}},
	}
}

func suiteNames() []string {
	var names []string
	for _, s := range suites() {
		names = append(names, s.name)
	}
	return names
}

// find answers the suites of these names, in the order of [suites].
func find(names []string) ([]suite, error) {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[strings.TrimSpace(name)] = true
	}
	var found []suite
	for _, s := range suites() {
		if wanted[s.name] {
			found = append(found, s)
			delete(wanted, s.name)
		}
	}
	for name := range wanted {
		return nil, fmt.Errorf("no suite %q; there are %s", name, strings.Join(suiteNames(), ", "))
	}
	return found, nil
}
