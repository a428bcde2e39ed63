// Package js measures against the limiters of JavaScript, in which the
// documents that Stint answers to were written. Node is another process, so
// the turns are its processes' turns; each times itself, after a pass that
// warms its compiler up.
package js

import (
	"embed"
	"encoding/json"
	"os"
	"strconv"

	"github.com/stintgo/stint/internal/command"

	"github.com/stintgo/stint/bench/measure"
)

// The names of the subjects, as tables and goals write them.
const (
	ours             = "stint"
	pLimit           = "p-limit"
	pQueue           = "p-queue"
	pQueuePriorities = "p-queue priorities"
)

const (
	rate    = "rate" // tasks per second
	tasks   = 100_000
	atATime = 100
)

//go:embed package.json bench.mjs tus.mjs
var files embed.FS

// Versions are the packages that are measured against, with their versions.
func Versions() (map[string]string, error) {
	text, err := files.ReadFile("package.json")
	if err != nil {
		return nil, err
	}
	var manifest struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	err = json.Unmarshal(text, &manifest)
	return manifest.Dependencies, err
}

// Packages is a directory with the packages of package.json installed.
type Packages struct{ dir string }

// Prepare installs the packages into dir, from the npm registry.
func Prepare(dir string) (*Packages, error) {
	if err := command.Need("node:nodejs", "npm:npm"); err != nil {
		return nil, err
	}
	if err := os.CopyFS(dir, files); err != nil {
		return nil, err
	}
	// The versions are pinned in package.json. A lock file would also name the
	// registry of the machine on which it was made.
	_, err := command.Run(dir, nil, "npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts")
	return &Packages{dir}, err
}

// Dir is the directory, which also has tus.mjs, for the suite of uploads.
func (p *Packages) Dir() string { return p.dir }

// Cases are the rows of this suite.
func (p *Packages) Cases() []measure.Case {
	return []measure.Case{p.futures(), p.priorities()}
}

func (p *Packages) futures() measure.Case {
	return measure.Case{
		Name:     "100,000 futures through a limit of 100",
		Ours:     ours,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 10× " + pLimit, "rate ≥ 10× " + pQueue},
		Subjects: []measure.Subject{
			{Name: ours, Probe: twice(flood)},
			{Name: pLimit, Probe: p.node(pLimit)},
			{Name: pQueue, Probe: p.node(pQueue)},
		},
	}
}

func (p *Packages) priorities() measure.Case {
	return measure.Case{
		Name:     "7 priorities, 100,000 tasks pending before the first one starts",
		Ours:     ours,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 50× " + pQueuePriorities},
		Subjects: []measure.Subject{
			{Name: ours, Probe: twice(pending)},
			{Name: pQueuePriorities, Probe: p.node(pQueuePriorities)},
		},
	}
}

func (p *Packages) node(subject string) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		n := strconv.Itoa(st.Size(tasks))
		text, err := command.Run(p.dir, nil, "node", "bench.mjs", subject, n, strconv.Itoa(atATime))
		if err != nil {
			return nil, err
		}
		perSecond, err := strconv.ParseFloat(text, 64)
		return measure.Values{rate: perSecond}, err
	}
}
