package durable

import (
	"errors"

	"github.com/stintgo/stint/bench/measure"
)

// lifecycle is a queue in steady work: tasks are submitted, claimed, run and
// settled at the same time. The clock stops when the last one is settled.
func (s *Systems) lifecycle() measure.Case {
	all := func(k keeper, n int) error { return submitAll(k, n, callers) }
	return measure.Case{
		Name:     "submit, claim, run, settle: 64 callers, 64 workers",
		Ours:     ours,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 60000 /s", "rate ≥ 0.6× " + barePebble},
		Subjects: []measure.Subject{
			{Name: ours, Probe: s.working(40_000, openStint, all)},
			{Name: oursMemory, Probe: s.working(60_000, openStintMemory, all)},
			{Name: barePebble, Probe: s.working(60_000, openPebble, all)},
			{Name: asynqAlways, Probe: s.working(3_000, openAsynqAlways, all)},
			{Name: asynqEverySec, Probe: s.working(10_000, openAsynqEverySec, all)},
			{Name: riverTuned, Probe: s.working(3_000, openRiverTuned, all)},
			{Name: riverDefault, Probe: s.working(3_000, openRiverDefault, all)},
			{Name: natsSynced, Probe: s.working(2_000, openNATSSynced, all)},
			{Name: natsNotSynced, Probe: s.working(20_000, openNATS, all)},
			{Name: backliteFull, Probe: s.working(1_000, openBacklite, all)},
		},
	}
}

// lifecycleBatches is the same with one caller that submits a thousand at a time.
func (s *Systems) lifecycleBatches() measure.Case {
	return measure.Case{
		Name:     "submit, claim, run, settle: one caller, batches of 1000, 64 workers",
		Ours:     ours,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 150000 /s", "rate ≥ 0.42× " + barePebble},
		Subjects: []measure.Subject{
			{Name: ours, Probe: s.working(80_000, openStint, submitBatches)},
			{Name: oursMemory, Probe: s.working(80_000, openStintMemory, submitBatches)},
			{Name: barePebble, Probe: s.working(200_000, openPebble, submitBatches)},
			{Name: riverTuned, Probe: s.working(10_000, openRiverTuned, submitBatches)},
			{Name: riverDefault, Probe: s.working(5_000, openRiverDefault, submitBatches)},
			{Name: natsSynced, Probe: s.working(2_000, openNATSSynced, submitBatches)},
			{Name: natsNotSynced, Probe: s.working(30_000, openNATS, submitBatches)},
			{Name: backliteFull, Probe: s.working(2_000, openBacklite, submitBatches)},
		},
	}
}

// working times n tasks from the first submission until the last one is settled.
func (s *Systems) working(n int, open opener, submit func(keeper, int) error,
) func(*measure.Stage) (measure.Values, error) {
	return s.probe(func(t *turn) (measure.Values, error) {
		n := t.Size(n)
		k, err := open(t)
		if err != nil {
			return nil, err
		}
		sys, seen := k.(system), newTally()
		if err := sys.work(func(int64) { seen.one() }); err != nil {
			return nil, err
		}
		run := func(n int) error {
			seen.expect(n)
			if err := submit(k, n); err != nil {
				return err
			}
			return seen.wait()
		}
		if err := run(warmUp); err != nil {
			return nil, err
		}
		start := measure.Now()
		if err := run(n); err != nil {
			return nil, err
		}
		if err := sys.settled(); err != nil {
			return nil, err
		}
		took := measure.Since(start)
		return paced(n, took), errors.Join(keeps(k, 0), seen.exact())
	})
}
