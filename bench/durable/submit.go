package durable

import "github.com/stintgo/stint/bench/measure"

// submitMany submits as servers do: each request submits a task and is answered
// when that is safe. The goal by itself and the one against Pebble are the same
// on the machine that the goals were set on.
func (s *Systems) submitMany() measure.Case {
	all := func(k keeper, n int) error { return submitAll(k, n, callers) }
	return measure.Case{
		Name:     "submit, 64 callers that wait for each answer",
		Ours:     ours,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 80000 /s", "rate ≥ 0.63× " + barePebble},
		Subjects: []measure.Subject{
			{Name: ours, Probe: s.submitting(40_000, openStint, all)},
			{Name: oursMemory, Probe: s.submitting(100_000, openStintMemory, all)},
			{Name: barePebble, Probe: s.submitting(60_000, openPebble, all)},
			{Name: asynqAlways, Probe: s.submitting(10_000, openAsynqAlways, all)},
			{Name: asynqEverySec, Probe: s.submitting(30_000, openAsynqEverySec, all)},
			{Name: riverTuned, Probe: s.submitting(3_000, openRiverTuned, all)},
			{Name: natsSynced, Probe: s.submitting(3_000, openNATSSynced, all)},
			{Name: natsNotSynced, Probe: s.submitting(30_000, openNATS, all)},
			{Name: backliteFull, Probe: s.submitting(2_000, openBacklite, all)},
		},
	}
}

// submitBatches submits as imports do: one caller, a thousand tasks at a time.
// asynq has nothing for it.
func (s *Systems) submitBatches() measure.Case {
	return measure.Case{
		Name:     "submit, one caller, batches of 1000",
		Ours:     ours,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 400000 /s", "rate ≥ 0.5× " + barePebble},
		Subjects: []measure.Subject{
			{Name: ours, Probe: s.submitting(200_000, openStint, submitBatches)},
			{Name: oursMemory, Probe: s.submitting(200_000, openStintMemory, submitBatches)},
			{Name: barePebble, Probe: s.submitting(400_000, openPebble, submitBatches)},
			{Name: riverTuned, Probe: s.submitting(40_000, openRiverTuned, submitBatches)},
			{Name: natsSynced, Probe: s.submitting(3_000, openNATSSynced, submitBatches)},
			{Name: natsNotSynced, Probe: s.submitting(100_000, openNATS, submitBatches)},
			{Name: backliteFull, Probe: s.submitting(50_000, openBacklite, submitBatches)},
		},
	}
}

// submitOne is bounded by the disk: no other caller shares its syncs. The goal
// compares it with a log that grows, as any new one does. A log whose blocks are
// allocated already is written faster, and is listed beside it.
func (s *Systems) submitOne() measure.Case {
	one := func(k keeper, n int) error { return submitAll(k, n, 1) }
	return measure.Case{
		Name:     "submit, one caller that waits for each answer",
		Ours:     ours,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 0.9× " + growingLog},
		Subjects: []measure.Subject{
			{Name: writtenOver, Probe: s.submitting(3_000, openWrittenOver, one)},
			{Name: growingLog, Probe: s.submitting(3_000, openGrowingLog, one)},
			{Name: ours, Probe: s.submitting(3_000, openStint, one)},
			{Name: barePebble, Probe: s.submitting(3_000, openPebble, one)},
			{Name: asynqAlways, Probe: s.submitting(2_000, openAsynqAlways, one)},
			{Name: asynqEverySec, Probe: s.submitting(5_000, openAsynqEverySec, one)},
			{Name: riverTuned, Probe: s.submitting(1_000, openRiverTuned, one)},
			{Name: natsSynced, Probe: s.submitting(2_000, openNATSSynced, one)},
			{Name: natsNotSynced, Probe: s.submitting(10_000, openNATS, one)},
			{Name: backliteFull, Probe: s.submitting(1_000, openBacklite, one)},
		},
	}
}

// submitting times n submissions. That the tasks are there afterwards shows that
// the system took them all.
func (s *Systems) submitting(n int, open opener, submit func(keeper, int) error,
) func(*measure.Stage) (measure.Values, error) {
	return s.probe(func(t *turn) (measure.Values, error) {
		n := t.Size(n)
		k, err := open(t)
		if err != nil {
			return nil, err
		}
		// The first tasks pay for what is made once, such as connections.
		if err := submit(k, warmUp); err != nil {
			return nil, err
		}
		start := measure.Now()
		if err := submit(k, n); err != nil {
			return nil, err
		}
		took := measure.Since(start)
		return paced(n, took), keeps(k, n+warmUp)
	})
}
