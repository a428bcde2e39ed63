package durable

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/stintgo/stint/queue"

	"github.com/stintgo/stint/bench/measure"
)

const limitKeys = 100

// limits measures the cost of limits that are never reached: on one store, the same
// work with the same keys, with limits and without. Tasks are submitted in batches,
// so that the time of the disk hides as little as possible.
func (s *Systems) limits(store string, open opener) measure.Case {
	const on, off = "stint, limits on", "stint, limits off"
	return measure.Case{
		Name:     "limits that do not bind, 100 keys, batches of 1000, 64 workers, " + store,
		Ours:     on,
		Readings: []measure.Reading{{Name: rate, Unit: "/s"}},
		Goals:    []string{"rate ≥ 0.9× " + off},
		Subjects: []measure.Subject{
			{Name: on, Probe: s.working(60_000, keyed(open, wideLimits()), submitBatches)},
			{Name: off, Probe: s.working(60_000, keyed(open, queue.Settings{}), submitBatches)},
		},
	}
}

// wideLimits are limits that count each task and are never reached.
func wideLimits() queue.Settings {
	const plenty = 1_000_000
	return queue.Settings{
		Max: 10 * workers, PerKey: 10 * workers,
		KeyRate: queue.Rate{PerSecond: plenty, Burst: plenty},
	}
}

// keyed has tasks belong to many keys in turn, under settings.
func keyed(open opener, settings queue.Settings) opener {
	return func(t *turn) (keeper, error) {
		k, err := open(t)
		if err != nil {
			return nil, err
		}
		var next atomic.Uint64
		s := k.(*stintQueue)
		s.keyOf = func() string { return strconv.FormatUint(next.Add(1)%limitKeys, 10) }
		return s, s.queue.Configure(context.Background(), defaultQueue, settings)
	}
}
