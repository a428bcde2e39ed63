package shared

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stintgo/stint"

	"github.com/stintgo/stint/bench/measure"
)

// waitReadings are those of cases that are about how long something takes.
func waitReadings() []measure.Reading {
	return []measure.Reading{{Name: half, Unit: "ns"}, {Name: most, Unit: "ns"}}
}

func waitValues(waits []int64) measure.Values {
	slices.Sort(waits)
	n := len(waits)
	return measure.Values{half: float64(waits[n/2]), most: float64(waits[n*99/100])}
}

// pause is a random time, so that nothing that looks in intervals always has the
// same luck.
func pause() { time.Sleep(2*time.Millisecond + rand.N(6*time.Millisecond)) }

// some is how many waits a turn measures.
func some(t *turn, n int) int {
	if t.Once {
		return 3
	}
	return n
}

// wake is how long it takes from the beginning of a release in one process to the
// end of an acquire in another, while the machine has nothing else to do.
func (s *Systems) wake() measure.Case {
	subject := func(name string) measure.Subject {
		return measure.Subject{Name: name, Probe: s.on(name, 1, wakes)}
	}
	return measure.Case{
		Name:     "from release to acquire in another process, idle",
		Ours:     scheduler,
		Readings: waitReadings(),
		Goals:    []string{"p50 ≤ 1.5× " + wakeFloor, "p99 ≤ 1× " + fileLocks},
		Subjects: []measure.Subject{
			subject(scheduler), subject(wakeFloor), subject(handFloor),
			subject(fileLocks), subject(tokenDaemon), subject(redisTokens),
		},
	}
}

// wakesMeasured is enough for a p99 that is not the worst of all.
const wakesMeasured = 400

func wakes(t *turn) (measure.Values, error) {
	o := t.order
	o.Does, o.Callers, o.Tier = doesObey, 1, stint.Normal
	both, err := t.startAll(2, o)
	if err != nil {
		return nil, err
	}
	holder, waiter := both[0], both[1]
	if _, err := holder.ask(acquireSlot); err != nil {
		return nil, err
	}
	var waits []int64
	for range some(t, wakesMeasured) {
		if err := waiter.send(acquireSlot); err != nil {
			return nil, err
		}
		pause()
		released, err := holder.ask(releaseSlot)
		if err != nil {
			return nil, err
		}
		acquired, err := waiter.receive()
		if err != nil {
			return nil, err
		}
		waits = append(waits, acquired.Ended-released.Began)
		holder, waiter = waiter, holder
	}
	return waitValues(waits), nil
}

// flood is how long a high tier of one process waits behind a crowd of the lowest
// tier in another. Each of those has the one slot for a tenth of a millisecond: to
// wait for the holder is half of that, and for all of them 6.4 ms.
func (s *Systems) flood() measure.Case {
	const oneTier = scheduler + ", all in one tier"
	subject := func(name string) measure.Subject {
		return measure.Subject{Name: name, Probe: s.on(name, 1, behindFlood(stint.High))}
	}
	return measure.Case{
		Name:     "a high tier behind 64 callers of the lowest in another process, 0.1 ms each, 1 slot",
		Ours:     scheduler,
		Readings: waitReadings(),
		Goals:    []string{"p50 ≤ 0.2 ms"},
		Subjects: []measure.Subject{
			subject(scheduler),
			{Name: oneTier, Probe: s.on(scheduler, 1, behindFlood(stint.Lowest))},
			subject(fileLocks), subject(tokenDaemon), subject(redisTokens),
		},
	}
}

const floodMeasured = 60

func behindFlood(tier stint.Priority) func(*turn) (measure.Values, error) {
	return func(t *turn) (measure.Values, error) {
		o := t.order
		o.Does, o.Callers, o.Tier, o.Work = doesFlood, allCallers, stint.Lowest, 100*time.Microsecond
		if _, err := t.start(o); err != nil {
			return nil, err
		}
		o.Does, o.Callers, o.Tier = doesObey, 1, tier
		p, err := t.start(o)
		if err != nil {
			return nil, err
		}
		var waits []int64
		for range some(t, floodMeasured) {
			pause()
			acquired, err := p.ask(acquireSlot)
			if err != nil {
				return nil, err
			}
			waits = append(waits, acquired.Ended-acquired.Began)
			if _, err := p.ask(releaseSlot); err != nil {
				return nil, err
			}
		}
		return waitValues(waits), nil
	}
}

// killed is how long it takes from the signal that kills the holder of the only
// slot to the end of an acquire that waits for it. Redis is not there: its token
// is lost with the holder.
func (s *Systems) killed() measure.Case {
	subject := func(name string) measure.Subject {
		return measure.Subject{Name: name, Probe: s.on(name, 1, afterKill(killsMeasured, 0))}
	}
	return measure.Case{
		Name:     "from kill -9 of the holder to acquire in another process",
		Ours:     scheduler,
		Readings: waitReadings(),
		Goals:    []string{"p99 ≤ 2 ms"},
		Subjects: []measure.Subject{subject(scheduler), subject(fileLocks), subject(tokenDaemon)},
	}
}

// killedLarge is the same with a holder whose memory the kernel has to free first:
// 2 ms, and 70 µs for each MiB.
func (s *Systems) killedLarge() measure.Case {
	subject := func(name string) measure.Subject {
		return measure.Subject{Name: name, Probe: s.on(name, 1, afterKill(largeMeasured, 256<<20))}
	}
	return measure.Case{
		Name:     "from kill -9 of the holder, of 256 MiB, to acquire in another process",
		Ours:     scheduler,
		Readings: waitReadings(),
		Goals:    []string{"p99 ≤ 19.9 ms"},
		Subjects: []measure.Subject{subject(scheduler), subject(fileLocks), subject(tokenDaemon)},
	}
}

const (
	killsMeasured = 40
	largeMeasured = 10
)

func afterKill(n, ballast int) func(*turn) (measure.Values, error) {
	return func(t *turn) (measure.Values, error) {
		o := t.order
		o.Does, o.Callers, o.Tier = doesObey, 1, stint.Normal
		waiter, err := t.start(o)
		if err != nil {
			return nil, err
		}
		o.Ballast = ballast
		if t.Once {
			o.Ballast = min(ballast, 1<<20)
		}
		var waits []int64
		for range some(t, n) {
			wait, err := t.killHolder(o, waiter)
			if err != nil {
				return nil, err
			}
			waits = append(waits, wait)
		}
		return waitValues(waits), nil
	}
}

// killHolder has a new process take the slot, kills it while another waits, and
// returns how long the other one has waited since.
func (t *turn) killHolder(o order, waiter *process) (wait int64, err error) {
	holder, err := t.start(o)
	if err != nil {
		return 0, err
	}
	if _, err := holder.ask(acquireSlot); err != nil {
		return 0, err
	}
	if err := waiter.send(acquireSlot); err != nil {
		return 0, err
	}
	pause()
	began := stamp()
	if err := holder.kill(); err != nil {
		return 0, err
	}
	acquired, err := waiter.receive()
	if err != nil {
		return 0, err
	}
	_, err = waiter.ask(releaseSlot)
	return acquired.Ended - began, err
}
