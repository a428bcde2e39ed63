package main

import (
	"fmt"
	"strings"

	"github.com/stintgo/stint/bench/backlog"
	"github.com/stintgo/stint/bench/core"
	"github.com/stintgo/stint/bench/csync"
	"github.com/stintgo/stint/bench/durable"
	"github.com/stintgo/stint/bench/js"
	"github.com/stintgo/stint/bench/limiter"
	"github.com/stintgo/stint/bench/measure"
	"github.com/stintgo/stint/bench/run"
	"github.com/stintgo/stint/bench/scale"
	"github.com/stintgo/stint/bench/shared"
	"github.com/stintgo/stint/bench/upload"
)

// suite is a number of cases that are run together.
type suite struct {
	name  string
	cases func(setup) ([]measure.Case, error)
	// apart says that it takes much time or room, and is run when it is named, or
	// in a tiny pass.
	apart bool
}

// setup is what a suite is made with.
type setup struct {
	dir     string // its own, which is removed after the run
	pending int    // tasks of the suite scale
}

// suites are all there are, in the order in which they are run and reported.
func suites() []suite {
	inProcess := func(cases func() []measure.Case) func(setup) ([]measure.Case, error) {
		return func(setup) ([]measure.Case, error) { return cases(), nil }
	}
	return []suite{
		{name: "core", cases: inProcess(core.Cases)},
		{name: "backlog", cases: inProcess(backlog.Cases)},
		{name: "limiter", cases: inProcess(limiter.Cases)},
		{name: "csync", cases: inProcess(csync.Cases)},
		{name: "run", cases: func(s setup) ([]measure.Case, error) {
			programs, err := run.Prepare(s.dir)
			if err != nil {
				return nil, err
			}
			return programs.Cases(), nil
		}},
		{name: "shared", cases: func(s setup) ([]measure.Case, error) {
			systems, err := shared.Prepare(s.dir)
			if err != nil {
				return nil, err
			}
			return systems.Cases(), nil
		}},
		{name: "durable", cases: func(s setup) ([]measure.Case, error) {
			systems, err := durable.Prepare(s.dir)
			if err != nil {
				return nil, err
			}
			return systems.Cases(), nil
		}},
		{name: "upload", cases: func(s setup) ([]measure.Case, error) {
			systems, err := upload.Prepare(s.dir)
			if err != nil {
				return nil, err
			}
			return systems.Cases(), nil
		}},
		{name: "js", cases: func(s setup) ([]measure.Case, error) {
			packages, err := js.Prepare(s.dir)
			if err != nil {
				return nil, err
			}
			return packages.Cases(), nil
		}},
		{name: "scale", apart: true, cases: func(s setup) ([]measure.Case, error) {
			tasks, err := scale.Prepare(s.dir, s.pending)
			if err != nil {
				return nil, err
			}
			return tasks.Cases(), nil
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

// usual are the names of the suites that are run when none is named.
func usual(once bool) []string {
	var names []string
	for _, s := range suites() {
		if once || !s.apart {
			names = append(names, s.name)
		}
	}
	return names
}

// find returns the suites of these names, in the order of [suites].
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
