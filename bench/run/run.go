// Package run measures the program: commands from a list, two at a time,
// against the tools that people do this with.
package run

import (
	"fmt"

	"github.com/stintgo/stint/bench/measure"
)

// The names of the subjects, as tables and goals write them.
const (
	ours        = "stint run"
	oursLogged  = "stint run --joblog"
	limit       = "fork loop (limit)"
	xargs       = "xargs"
	taskSpooler = "task-spooler"
	gnuParallel = "GNU parallel"
)

// rate is jobs per second, starting and ending of the runner included.
const rate = "rate"

const (
	jobs     = 3000
	slowJobs = 600 // for runners that take a millisecond and more for each
	starts   = 100
)

// Cases are the rows of this suite.
func (p *Programs) Cases() []measure.Case {
	return []measure.Case{p.inMemory(), p.logged(), p.startUp()}
}

func (p *Programs) inMemory() measure.Case {
	return measure.Case{
		Name:     "run /bin/true, two at a time",
		Ours:     ours,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 0.85× " + limit},
		Subjects: []measure.Subject{
			{Name: ours, Probe: paced(jobs, p.runStint)},
			{Name: limit, Probe: paced(jobs, p.runForkLoop)},
			{Name: xargs, Probe: paced(jobs, p.runXargs)},
			{Name: taskSpooler, Probe: paced(slowJobs, p.runTaskSpooler)},
			{Name: gnuParallel, Probe: paced(slowJobs, p.runParallel)},
		},
	}
}

func (p *Programs) logged() measure.Case {
	return measure.Case{
		Name:     "run /bin/true, two at a time, every job in a durable log",
		Ours:     oursLogged,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 0.75× " + limit},
		Subjects: []measure.Subject{
			{Name: oursLogged, Probe: paced(jobs, p.runStintLogged)},
			{Name: limit, Probe: paced(jobs, p.runForkLoop)},
			{Name: gnuParallel + " --joblog", Probe: paced(slowJobs, p.runParallelLogged)},
		},
	}
}

// paced times a run of n jobs. The kernel's own count of new processes shows
// that they were all started: a runner that gives up early would be quick.
func paced(n int, work func(n int) error) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		n := st.Size(n)
		before, err := started()
		if err != nil {
			return nil, err
		}
		start := measure.Now()
		if err := work(n); err != nil {
			return nil, err
		}
		took := measure.Since(start)
		after, err := started()
		if err == nil && after-before < n {
			err = fmt.Errorf("started %d of %d jobs", after-before, n)
		}
		return measure.Values{rate: float64(n) / took.Seconds()}, err
	}
}

// startUp measures the time before the first job.
func (p *Programs) startUp() measure.Case {
	const nothing = "stint run, empty list"
	return measure.Case{
		Name:     "start-up",
		Ours:     nothing,
		Readings: []measure.Reading{{Name: measure.Time, Unit: "ns"}},
		Goals:    []string{"time ≤ 5 ms"},
		Subjects: []measure.Subject{
			{Name: nothing, Probe: repeated(func() error { return p.runStint(0) })},
			{Name: "stint version", Probe: repeated(p.stintVersion)},
			{Name: "/bin/true (floor)", Probe: repeated(p.runTrue)},
			{Name: xargs + ", empty list", Probe: repeated(func() error { return p.runXargs(0) })},
		},
	}
}

// repeated times one start among many. It is not a loop, because the allocations
// of a loop would be those of this process, which starts the others.
func repeated(work func() error) func(*measure.Stage) (measure.Values, error) {
	return func(st *measure.Stage) (measure.Values, error) {
		n := st.Size(starts)
		start := measure.Now()
		for range n {
			if err := work(); err != nil {
				return nil, err
			}
		}
		return measure.Values{measure.Time: float64(measure.Since(start)) / float64(n)}, nil
	}
}
