package shared

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stintgo/stint/bench/measure"
)

// free measures a slot that no other caller wants.
func (s *Systems) free() measure.Case {
	subject := func(name string) measure.Subject {
		return measure.Subject{Name: name, Probe: s.on(name, freeSlots, pairs(1, 1))}
	}
	return measure.Case{
		Name:     "acquire + release, 16 slots free, one process",
		Ours:     slotsAlone,
		Readings: []measure.Reading{{Name: pairTime, Unit: "ns"}},
		Goals:    []string{"time ≤ 10 ns", "time ≤ 2× " + floor},
		Subjects: []measure.Subject{
			subject(floor), subject(slotsAlone), subject(scheduler),
			subject(fileLocks), subject(tokenDaemon), subject(redisTokens),
		},
	}
}

const freeSlots = 16

// freeOfTwo shows what processes pay for one another while slots are free: with
// nothing shared between them, two do twice as much as one.
func (s *Systems) freeOfTwo() measure.Case {
	const one = slotsAlone + ", one process"
	subject := func(name string) measure.Subject {
		return measure.Subject{Name: name, Probe: s.on(name, freeSlots, pairs(2, 1))}
	}
	return measure.Case{
		Name:     "acquire + release, 16 slots free, two processes",
		Ours:     slotsAlone,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 1.8× " + one},
		Subjects: []measure.Subject{
			subject(slotsAlone),
			{Name: one, Probe: s.on(slotsAlone, freeSlots, pairs(1, 1))},
			subject(scheduler), subject(fileLocks), subject(tokenDaemon), subject(redisTokens),
		},
	}
}

// What is fought for.
const (
	fewSlots   = 4
	allCallers = 64
)

// saturated is the price of waiting: more callers than slots, without pause.
func (s *Systems) saturated(processes int) measure.Case {
	subject := func(name string) measure.Subject {
		return measure.Subject{Name: name, Probe: s.on(name, fewSlots, pairs(processes, allCallers/processes))}
	}
	return measure.Case{
		Name:     fmt.Sprintf("acquire + release, 4 slots, 64 callers in %d processes", processes),
		Ours:     scheduler,
		Readings: []measure.Reading{{Name: pairTime, Unit: "ns"}, {Name: leastShare, Unit: "%"}},
		Goals:    []string{"time ≤ 1.5 µs", "least share ≥ 80 %"},
		Subjects: []measure.Subject{
			subject(scheduler), subject(fileLocks), subject(tokenDaemon), subject(redisTokens),
		},
	}
}

// pairsSpan is how long pairs are counted. It has many of the periods in which
// processes take turns.
const pairsSpan = 500 * time.Millisecond

// pairs measures how often the given number of processes, each with the given number
// of goroutines, acquire and release.
func pairs(processes, callers int) func(*turn) (measure.Values, error) {
	return func(t *turn) (measure.Values, error) {
		o := t.order
		o.Does, o.Callers, o.Span = doesPairs, callers, t.Span(pairsSpan)
		all, err := t.startAll(processes, o)
		if err != nil {
			return nil, err
		}
		for _, p := range all {
			err = errors.Join(err, p.send(runPairs))
		}
		var rates []float64
		for _, p := range all {
			a, failure := p.receive()
			err = errors.Join(err, failure)
			rates = append(rates, float64(a.Pairs)/time.Duration(a.Ended-a.Began).Seconds())
		}
		return pairValues(rates), err
	}
}

func (t *turn) startAll(n int, o order) (all []*process, err error) {
	for range n {
		p, err := t.start(o)
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// pairValues are the readings, by the rates of the processes.
func pairValues(rates []float64) measure.Values {
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return measure.Values{
		rate:       sum,
		pairTime:   float64(time.Second) / sum,
		leastShare: 100 * slices.Min(rates) / (sum / float64(len(rates))),
	}
}
